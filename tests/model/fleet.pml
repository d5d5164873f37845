/* The saved state of the fleet, and the constants of the model.

   Two groups, A and B, of three update domains with one machine each, on three hosts. So a machine stands for its
   update domain and has at most one event, which is stored with the machine. A host has at most one order.

   A tick is five minutes. NotBefore is relative to now, so that the current time is not part of the state. */

#define MACHINES 6
#define HOSTS 3
#define GROUP(m) ((m) / 3)
#define STAYS(m) ((m) == 1 || (m) == 2)	/* mobility none; all others leave in an evacuation */

#ifdef REAL
#define REBOOT_NOTICE 3		/* 15 minutes */
#define REDEPLOY_NOTICE 2	/* 10 minutes */
#define DEGRADE_NOTICE 2016	/* 7 days */
#define STALE 6			/* 30 minutes */
#define DEFERRAL 3		/* the longest deferral of a group: 15 minutes */
#define LONGEST_MOVE 6		/* the longest postponement at a time: half an hour */
#define LEAVING 4		/* the expected time of a move: 20 minutes */
#elif defined(REPLAYED)
#define REBOOT_NOTICE 2
#define REDEPLOY_NOTICE 1
#define DEGRADE_NOTICE 3
#define STALE 2
#define DEFERRAL 1
#define LONGEST_MOVE 6		/* as in core */
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
#define WORK 1			/* the expected time of work, and the shortest postponement */
#define AT_ONCE 1		/* concurrent moves from a host */

/* The permitted actions: one bit each, so that a run can exclude some. */
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
#define MOVING (ALLOWED & 128)	/* otherwise machines that move come back to their host at once */
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

/* A machine's state in the order on its host; Scheduled and Started are the status of its event. */
#define FREE 0
#define QUEUED 1
#define SCHEDULED 2
#define STARTED 3

byte host[MACHINES];
byte share[MACHINES];
bit armed[MACHINES];
bit approved[MACHINES];
bit deferred[MACHINES];
short not_before[MACHINES];	/* in ticks from now, at least -STALE: it is withdrawn then.
				   For a machine that is leaving: when it should be gone, at least a tick from now */
byte moved[MACHINES];		/* how many ticks NotBefore has moved since arming was first refused, up to LONGEST_MOVE */
byte number[MACHINES];		/* of machines that leave a host: the order of their announcements */
byte told[MACHINES];		/* how many ticks guests have seen it, up to REBOOT_NOTICE; for the rules only */

byte order[HOSTS];
byte state[HOSTS];
bit working[HOSTS];		/* work on the host itself is under way */
bit held;
bit down;			/* the server is down: only time advances */
#ifdef ORDERS
byte left = ORDERS;		/* orders that may still be placed */
#endif

#define LISTED(m) (share[m] >= SCHEDULED)
#define MINE(m, h) (host[m] == (h) && share[m] != FREE)
#define LEAVES(m, h) (order[h] == SERVICE && !STAYS(m))
#define STARTS_WITH_HOST(m, h) (MINE(m, h) && !LEAVES(m, h))	/* together with its stage */
#define EXEMPT(m) (order[host[m]] == FAIL)	/* from rule 4 */
#define MINIMUM(m) ((order[host[m]] == MAINTENANCE || (order[host[m]] == SERVICE && STAYS(m))) -> REBOOT_NOTICE : REDEPLOY_NOTICE)
#define SOUND(h) (state[h] == OK && order[h] <= MAINTENANCE)
#define OTHER_SOUND(h) (SOUND(((h) + 1) % 3) || SOUND(((h) + 2) % 3))
