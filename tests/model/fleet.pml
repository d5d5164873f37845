/* The fleet: what is saved of it, and the constants it is tried with.

   Two groups, A and B, of three update domains with one machine each, on three hosts. So a machine is its update
   domain, and has at most one event: the event is kept with the machine. A host has at most one order.

   Time goes in ticks of five minutes. NotBefore is kept relative to now, so that time itself is no part of the state. */

#define MACHINES 6
#define HOSTS 3
#define GROUP(m) ((m) / 3)
#define STAYS(m) ((m) == 1 || (m) == 2)	/* mobility none; all others are moved away in an evacuation */

#ifdef REAL
#define REBOOT_NOTICE 3		/* 15 minutes */
#define REDEPLOY_NOTICE 2	/* 10 minutes */
#define DEGRADE_NOTICE 2016	/* 7 days */
#define STALE 6			/* 30 minutes */
#define DEFERRAL 3		/* what a group may put off: 15 minutes */
#define LONGEST_MOVE 6		/* what cannot be armed moves by so much at most, each time: half an hour */
#define LEAVING 4		/* how long a machine is expected to take to another host: 20 minutes */
#elif defined(REPLAYED)
#define REBOOT_NOTICE 2
#define REDEPLOY_NOTICE 1
#define DEGRADE_NOTICE 3
#define STALE 2
#define DEFERRAL 1
#define LONGEST_MOVE 6		/* core has no other */
#define LEAVING 4
#else
#define REBOOT_NOTICE 1
#define REDEPLOY_NOTICE 1
#define DEGRADE_NOTICE 2
#define STALE 1
#define DEFERRAL 1
#define LONGEST_MOVE 1
#define LEAVING 1
#endif
#define WORK 1			/* what work is expected to take: what cannot be armed moves by so much at least */
#define AT_ONCE 1		/* how many leave a host together */

/* What may happen: one bit for each, so that a run can leave some out. */
#ifndef ALLOWED
#define ALLOWED 511
#endif
#define MAINTAINING (ALLOWED & 1)
#define DEGRADING (ALLOWED & 2)
#define FAILING (ALLOWED & 4)
#define SERVICING (ALLOWED & 8)
#define DEFERRING (ALLOWED & 16)
#define HOLDING (ALLOWED & 32)
#define CRASHING (ALLOWED & 64)
#define MOVING (ALLOWED & 128)	/* else machines that move come back to their host at once */
#define TIMELY (ALLOWED & 256)	/* time passes */

/* Orders, by their action. */
#define NONE 0
#define MAINTENANCE 1
#define DEGRADE 2
#define FAIL 3
#define SERVICE 4

/* Hosts. */
#define OK 0
#define DEGRADED 1
#define FAILED 2
#define CORDONED 3

/* A machine's share of the order on its host; Scheduled and Started are its event's status. */
#define FREE 0
#define QUEUED 1
#define SCHEDULED 2
#define STARTED 3

byte host[MACHINES];
byte share[MACHINES];
bit armed[MACHINES];
bit approved[MACHINES];
bit deferred[MACHINES];
short not_before[MACHINES];	/* in ticks from now; no further back than STALE: it is withdrawn then.
				   Of a machine that is leaving: when it is expected to be gone, a tick from now at least */
byte moved[MACHINES];		/* by how many ticks NotBefore has moved since arming was first refused, up to LONGEST_MOVE */
byte number[MACHINES];		/* of those that leave a host: who was told first */
byte told[MACHINES];		/* for how many ticks guests have seen it, up to REBOOT_NOTICE: only rules read this */

byte order[HOSTS];
byte state[HOSTS];
bit working[HOSTS];		/* the work on the host itself is under way */
bit held;
bit down;			/* the server is: time goes on, and nothing else */
#ifdef ORDERS
byte left = ORDERS;		/* orders that may still be placed */
#endif

#define LISTED(m) (share[m] >= SCHEDULED)
#define MINE(m, h) (host[m] == (h) && share[m] != FREE)
#define LEAVES(m, h) (order[h] == SERVICE && !STAYS(m))
#define STARTS_WITH_HOST(m, h) (MINE(m, h) && !LEAVES(m, h))	/* with all others of its stage */
#define EXEMPT(m) (order[host[m]] == FAIL)	/* from rule 4 */
#define MINIMUM(m) ((order[host[m]] == MAINTENANCE || (order[host[m]] == SERVICE && STAYS(m))) -> REBOOT_NOTICE : REDEPLOY_NOTICE)
#define SOUND(h) (state[h] == OK && order[h] <= MAINTENANCE)
#define OTHER_SOUND(h) (SOUND(((h) + 1) % 3) || SOUND(((h) + 2) % 3))
