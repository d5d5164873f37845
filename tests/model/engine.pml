/* The engine: `look(h)` advances the order on host h as far as possible, like `lifecycle.advance`.

   A mutant drops one condition. The assertions of rules.pml share no code with this file. */

hidden byte m, o, g, queued, scheduled, started, leaving, running, ready;
hidden byte other, i, next, queue;
hidden byte counted[MACHINES], place_of[MACHINES];
hidden byte begun[MACHINES];	/* moves that began in this action */
hidden short first, notice, turn;
hidden byte going, hindered, refusing, may;
hidden byte announced[MACHINES];	/* events announced in this action, for the rules only */

#define NEVER 9999
#ifdef MUTANT_5_HOST_EARLY
#define COUNTS(x) LISTED(x)	/* machines without an event are ignored */
#else
#define COUNTS(x) true
#endif

/* Count the machines of the stage that starts together, and those that leave the host. */
inline count_shares(h) {
	queued = 0; scheduled = 0; started = 0; leaving = 0; running = 0; first = NEVER;
	for (m : 0 .. MACHINES - 1) {
		if
		:: MINE(m, h) ->
			queued = queued + (share[m] == QUEUED && !LEAVES(m, h));
			scheduled = scheduled + (share[m] == SCHEDULED && !LEAVES(m, h));
			started = started + (share[m] == STARTED && !LEAVES(m, h));
			leaving = leaving + (LEAVES(m, h) && COUNTS(m));
			running = running + (LEAVES(m, h) && share[m] == STARTED);
			if
			:: share[m] == SCHEDULED && !LEAVES(m, h) && not_before[m] < first -> first = not_before[m]
			:: else
			fi
		:: else
		fi
	}
}

/* Whether an armed event of another update domain blocks machine x (rule 4). */
inline find_armed(x) {
	hindered = 0;
	for (o : 0 .. MACHINES - 1) {
		if
		:: o != (x) && GROUP(o) == GROUP(x) && LISTED(o) && armed[o] -> hindered = 1; other = o
		:: else
		fi
	}
}

inline announce(x) {
	share[x] = SCHEDULED;
	not_before[x] = notice;
	armed[x] = (notice <= MINIMUM(x));
	approved[x] = 0; deferred[x] = 0;
	moved[x] = 0; told[x] = 0; announced[x] = 1
}

inline withdraw(x) {
	share[x] = QUEUED;
	armed[x] = 0; approved[x] = 0; deferred[x] = 0; not_before[x] = 0; moved[x] = 0; told[x] = 0; number[x] = 0
}

inline set_free(x) {
	withdraw(x);
	share[x] = FREE
}

/* Arming is saved by itself: an armed event stays armed until it leaves the document. An event that was refused before has
   waited long enough, and may be armed at any later look. */
#define TO_ARM(x) (share[x] == SCHEDULED && !armed[x] && (approved[x] || moved[x] > 0 || not_before[x] <= MINIMUM(x)))

inline find_hindrance(x) {
	find_armed(x);
#ifdef MUTANT_4_ARMED_BESIDE
	hindered = 0;
#endif
#ifdef MUTANT_4_TIMES_ALONE
	hindered = hindered && not_before[other] == not_before[x];
#endif
	skip
}

/* Move NotBefore to a later time, each time further, up to a limit. */
inline move(x, until) {
	if
	:: not_before[x] < until ->
		moved[x] = (moved[x] + until - not_before[x] > LONGEST_MOVE -> LONGEST_MOVE : moved[x] + until - not_before[x]);
		not_before[x] = until
	:: else
	fi
}

#define UNARMED(x, h) (STARTS_WITH_HOST(x, h) && share[x] == SCHEDULED && !armed[x])

/* Arm all events of a stage or none: at the first approval, or when one has only its minimum left. */
inline arm_stage(h) {
	refusing = 0; ready = 0;
#ifdef MUTANT_4_SINGLY
	for (m : 0 .. MACHINES - 1) {
		if
		:: UNARMED(m, h) && approved[m] ->
			find_hindrance(m);
			armed[m] = !hindered
		:: else
		fi
	}
#endif
	for (m : 0 .. MACHINES - 1) {
		if
		:: UNARMED(m, h) ->
			ready = ready || TO_ARM(m);
			find_hindrance(m);
			refusing = refusing || hindered
		:: else
		fi
	}
	for (m : 0 .. MACHINES - 1) {
		if
		:: UNARMED(m, h) && ready && !refusing -> armed[m] = 1
		:: UNARMED(m, h) && ready && refusing && not_before[m] <= MINIMUM(m) ->
			notice = MINIMUM(m) + (moved[m] > WORK -> moved[m] : WORK);
			move(m, notice)
		:: else
		fi
	}
}

inline arm(x) {
	if
	:: TO_ARM(x) ->
		find_hindrance(x);
		if
		:: !hindered -> armed[x] = 1
		:: hindered && not_before[x] <= MINIMUM(x) ->
			notice = MINIMUM(x) + (moved[x] > WORK -> moved[x] : WORK);
			move(x, notice)
		:: else
		fi
	:: else
	fi
}

#ifdef MUTANT_1_EARLY
#define PAST(x) (not_before[x] <= 1)
#else
#define PAST(x) (not_before[x] <= 0)
#endif
#ifdef MUTANT_4_UNARMED
#define READY(x) (approved[x] || PAST(x))
#else
#define READY(x) (armed[x] && (approved[x] || PAST(x)))
#endif
#ifdef MUTANT_11_LATE
#define OVERDUE(when) false
#else
#define OVERDUE(when) ((when) <= -STALE)
#endif

/* The next stage: of each group the lowest update domain. */
#define BEFORE(x, y, h) ((y) < (x) && MINE(y, h) && !LEAVES(y, h))
#define NEXT(x, h) (MINE(x, h) && !LEAVES(x, h) && !(BEFORE(x, GROUP(x) * 3, h) || BEFORE(x, GROUP(x) * 3 + 1, h)))

/* Whether the next stage may be announced. */
inline find_stage(h) {
	may = !held;
	for (m : 0 .. MACHINES - 1) {
		if
		:: NEXT(m, h) ->
			find_armed(m);
			/* With more notice than the minimum, it need not be armed yet. */
			if
			:: hindered && order[h] != DEGRADE -> may = 0
			:: else
			fi
		:: else
		fi
	}
}

#ifdef MUTANT_1_SHORT
#define FULL(x) (order[host[x]] == DEGRADE -> DEGRADE_NOTICE : MINIMUM(x) - 1)
#else
#define FULL(x) (order[host[x]] == DEGRADE -> DEGRADE_NOTICE : MINIMUM(x))
#endif

/* A host takes no machines after its own work is announced. */
inline cordon(h) {
	if
	:: order[h] == SERVICE && state[h] == OK -> state[h] = CORDONED
	:: else
	fi
}

inline announce_stage(h) {
	find_stage(h);
	if
	:: may ->
		going = 1;
		/* Start with the last: the search for the next stage needs the lower domains still queued. */
		for (m : 0 .. MACHINES - 1) {
			o = MACHINES - 1 - m;
			if
			:: NEXT(o, h) -> notice = FULL(o); announce(o)
			:: else
			fi
		}
		cordon(h)
	:: else
	fi
}

#if defined(MUTANT_5_ANY) || defined(MUTANT_5_HALF)
#define WHOLE(ready, scheduled) (ready > 0)
#else
#define WHOLE(ready, scheduled) (ready == scheduled)
#endif
#ifdef MUTANT_5_HALF
#define STARTING(x) READY(x)
#else
#define STARTING(x) true
#endif

/* Start all events of a stage together. */
inline start_stage(h) {
	may = !held;
	arm_stage(h);
	ready = 0;
	for (m : 0 .. MACHINES - 1) {
		ready = ready + (MINE(m, h) && share[m] == SCHEDULED && READY(m))
	}
	if
	:: may && WHOLE(ready, scheduled) ->
		for (m : 0 .. MACHINES - 1) {
			if
			:: MINE(m, h) && share[m] == SCHEDULED && STARTING(m) -> share[m] = STARTED
			:: else
			fi
		}
		working[h] = (order[h] == SERVICE)
	:: else
	fi
}

/* A failed host stops all its machines together, and waits for nothing. */
inline fail_all(h) {
	for (m : 0 .. MACHINES - 1) {
		if
		:: MINE(m, h) && share[m] == QUEUED -> notice = 0; announce(m); share[m] = STARTED
		:: else
		fi
	}
}

/* An evacuation: each event is announced, starts when a slot is free, and becomes stale by itself.
   The order is by update domain, then by group. */
#define BY_DOMAIN(i) (((i) % 2) * 3 + (i) / 2)
#define LEAVER(x, h) (MINE(x, h) && LEAVES(x, h))
#define SOONER_THAN(x, y) (not_before[x] < not_before[y] || (not_before[x] == not_before[y] && number[x] < number[y]))

/* Estimate when the slot is free for x: after the machines that use it and those before x; after all others if x has no
   event yet. */
inline find_turn(h, x) {
	turn = 0;
	for (o : 0 .. MACHINES - 1) {
		if
		:: LEAVER(o, h) && share[o] == STARTED -> turn = (begun[o] -> LEAVING : not_before[o])
		:: else
		fi
	}
	/* In the order of their turns: find the next one repeatedly. */
	for (queue : 0 .. MACHINES - 1) {
		next = MACHINES;
		for (o : 0 .. MACHINES - 1) {
			if
			:: LEAVER(o, h) && share[o] == SCHEDULED && o != x && !counted[o] && (share[x] == QUEUED || SOONER_THAN(o, x)) ->
				if
				:: next == MACHINES -> next = o
				:: next != MACHINES && SOONER_THAN(o, next) -> next = o
				:: else
				fi
			:: else
			fi
		}
		if
		:: next < MACHINES ->
			counted[next] = 1;
			turn = (not_before[next] > turn -> not_before[next] : turn) + LEAVING
		:: else
		fi
	}
	for (o : 0 .. MACHINES - 1) {
		counted[o] = 0
	}
}

inline announce_leavers(h) {
	for (i : 0 .. MACHINES - 1) {
		m = BY_DOMAIN(i);
		if
		:: LEAVER(m, h) && share[m] == QUEUED && !held ->
			find_armed(m);
			if
			:: !hindered ->
				find_turn(h, m);
				notice = (turn > FULL(m) -> turn : FULL(m));
				announce(m);
				find_number(h, m);
				cordon(h)
			:: else
			fi
		:: else
		fi
	}
}

inline find_number(h, x) {
	number[x] = 1;
	for (o : 0 .. MACHINES - 1) {
		if
		:: LEAVER(o, h) && o != x && LISTED(o) && number[o] >= number[x] -> number[x] = number[o] + 1
		:: else
		fi
	}
}

inline start_leaver(h, x) {
	arm(x);
	if
	:: READY(x) && !held && running < AT_ONCE ->
		share[x] = STARTED;
		begun[x] = 1;
		running++
	:: READY(x) && !held && running >= AT_ONCE && not_before[x] <= 0 ->
		find_turn(h, x);
		move(x, turn)
	:: else
	fi
}

/* In the order of NotBefore before any of them moves. */
inline start_leavers(h) {
	for (i : 0 .. MACHINES - 1) {
		place_of[i] = 0;
		for (o : 0 .. MACHINES - 1) {
			place_of[i] = place_of[i] + (LEAVER(o, h) && share[o] == SCHEDULED && SOONER_THAN(o, i))
		}
		place_of[i] = (LEAVER(i, h) && share[i] == SCHEDULED -> place_of[i] : MACHINES)
	}
	for (i : 0 .. MACHINES - 1) {
		for (m : 0 .. MACHINES - 1) {
			if
			:: place_of[m] == i -> start_leaver(h, m)
			:: else
			fi
		}
	}
}

inline evacuate(h) {
	for (m : 0 .. MACHINES - 1) {
		if
		:: LEAVER(m, h) && share[m] == SCHEDULED && OVERDUE(not_before[m]) -> withdraw(m)
		:: else
		fi
	}
	announce_leavers(h);
	start_leavers(h)
}

inline close(h) {
	order[h] = NONE;
	working[h] = 0;
	if
	:: state[h] == CORDONED -> state[h] = OK
	:: else
	fi
}

inline look(h) {
	going = 1;
	do
	:: going ->
		going = 0;
		count_shares(h);
		if
		:: order[h] == NONE || working[h] -> skip
		:: order[h] == SERVICE && leaving > 0 -> evacuate(h)
		:: order[h] == SERVICE && leaving == 0 && queued + scheduled == 0 && !held -> working[h] = 1; cordon(h)
		:: order[h] == SERVICE && leaving == 0 && queued + scheduled == 0 && held -> skip
		:: order[h] == FAIL && queued > 0 -> fail_all(h)
		:: order[h] != NONE && order[h] != SERVICE && queued + scheduled + started == 0 -> close(h)
		:: else ->
			if
			:: scheduled > 0 && OVERDUE(first) ->
				for (m : 0 .. MACHINES - 1) {
					if
					:: MINE(m, h) && share[m] == SCHEDULED -> withdraw(m)
					:: else
					fi
				}
				going = 1
			:: scheduled > 0 && !OVERDUE(first) -> start_stage(h)
			:: scheduled + started == 0 -> announce_stage(h)
			:: else
			fi
		fi
	:: else -> break
	od;
	going = 0
}
