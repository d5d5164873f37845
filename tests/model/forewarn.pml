/* Rules 1, 4, 5 and 11 of docs/explanation/rules.md as a model: all actions, in any order, for any time.
   docs/contributing/model.md describes it; `make test-model` runs it. */

#include "fleet.pml"
#include "engine.pml"
#include "rules.pml"

/* Actions. */
#define ORDER 1
#define CANCEL 2
#define APPROVE 3
#define DEFER 4
#define HOLD 5
#define RELEASE 6
#define RESTORE 7
#define DONE 8
#define WORKED 9
#define LOOK 10
#define TICK 11
#define CRASH 12
#define RECOVER 13
#define WAIT 14

hidden byte act, y, n, h;
hidden byte refused;
hidden short x, span;

/* A refused action changes nothing. Only replayed runs try refused actions, and only during a hold: otherwise they would
   dominate the runs. */
#ifdef REPLAYED
#define TRIED(condition) (held || (condition))
#else
#define TRIED(condition) (condition)
#endif

#ifdef ORDERS
#define SOME_LEFT (left > 0)
#else
#define SOME_LEFT true
#endif

#define STAYS_DIVIDED(h) (host[1] == (h) && host[2] == (h))
#define UNDER_WAY(h) (working[h] || ANY_STARTED(h))
#define ANY_STARTED(h) (IS_STARTED(0, h) || IS_STARTED(1, h) || IS_STARTED(2, h) || IS_STARTED(3, h) || IS_STARTED(4, h) || IS_STARTED(5, h))
#define IS_STARTED(m, h) (host[m] == (h) && share[m] == STARTED)

#define MAY_ORDER(h, kind) (SOME_LEFT && ((kind) == MAINTENANCE || OTHER_SOUND(h)) && TRIED(IS_ORDERED(h, kind)))
#define IS_ORDERED(h, kind) (state[h] != FAILED && ((kind) == FAIL || order[h] == NONE) && !((kind) == SERVICE && STAYS_DIVIDED(h)))
#define IS_CANCELLED(h) (order[h] != NONE && order[h] != FAIL && !UNDER_WAY(h))
#define IS_RESTORED(h) (!(order[h] == DEGRADE && ANY_STARTED(h)))
#define IS_DEFERRED(m) (share[m] == SCHEDULED && !deferred[m])
#define MOVES(m) (order[host[m]] == DEGRADE || order[host[m]] == FAIL || LEAVES(m, host[m]))
#define MAY_ARRIVE(m, h) (MOVES(m) -> ((h) != host[m] && state[h] == OK && order[h] == NONE) : (h) == host[m])

/* Choose the action first, then its subject: otherwise random runs would prefer actions with many subjects. */
#define EACH_HOST(condition, what, kind) \
	:: !down && (condition(0) || condition(1) || condition(2)) -> \
		if \
		:: condition(0) -> x = 0 \
		:: condition(1) -> x = 1 \
		:: condition(2) -> x = 2 \
		fi; \
		act = what; y = kind
#define EACH_MACHINE(condition, what, where) \
	:: !down && (condition(0) || condition(1) || condition(2) || condition(3) || condition(4) || condition(5)) -> \
		if \
		:: condition(0) -> x = 0 \
		:: condition(1) -> x = 1 \
		:: condition(2) -> x = 2 \
		:: condition(3) -> x = 3 \
		:: condition(4) -> x = 4 \
		:: condition(5) -> x = 5 \
		fi; \
		act = what; y = where

#define MAY_MAINTAIN(h) (MAINTAINING && MAY_ORDER(h, MAINTENANCE))
#define MAY_DEGRADE(h) (DEGRADING && MAY_ORDER(h, DEGRADE))
#define MAY_FAIL(h) (FAILING && order[h] != FAIL && MAY_ORDER(h, FAIL))
#define MAY_SERVICE(h) (SERVICING && MAY_ORDER(h, SERVICE))
#define MAY_CANCEL(h) (order[h] != NONE && TRIED(IS_CANCELLED(h)))
#define MAY_RESTORE(h) (state[h] != OK && state[h] != CORDONED && TRIED(IS_RESTORED(h)))
#define MAY_APPROVE(m) (share[m] == SCHEDULED && !approved[m])
#define MAY_DEFER(m) (DEFERRING && LISTED(m) && TRIED(IS_DEFERRED(m)))
#define MAY_END(m) (share[m] == STARTED && !working[host[m]] && (!MOVES(m) || !MOVING))
#define MAY_MOVE_TO_0(m) MAY_MOVE(m, 0)
#define MAY_MOVE_TO_1(m) MAY_MOVE(m, 1)
#define MAY_MOVE_TO_2(m) MAY_MOVE(m, 2)
#define MAY_MOVE(m, h) (MOVING && share[m] == STARTED && !working[host[m]] && MOVES(m) && MAY_ARRIVE(m, h))
#define MAY_LOOK(h) (order[h] != NONE)

#define IS_WORKING(h) working[h]

/* A random run takes the first possible action after a random position. Rarely possible actions and frequent ones
   therefore alternate here. */
inline choose() {
	if
	:: TIMELY -> act = TICK; x = 0; y = 0
	:: HOLDING && !down && !held -> act = HOLD; x = 0; y = 0
	EACH_MACHINE(MAY_MOVE_TO_0, DONE, 0)
	:: !down && held -> act = RELEASE; x = 0; y = 0
	EACH_MACHINE(MAY_MOVE_TO_1, DONE, 1)
	EACH_HOST(IS_WORKING, WORKED, 0)
	EACH_MACHINE(MAY_APPROVE, APPROVE, 0)
	EACH_HOST(MAY_MAINTAIN, ORDER, MAINTENANCE)
	EACH_HOST(MAY_CANCEL, CANCEL, 0)
	/* The engine looks at all orders, in any order. */
	:: TIMELY && !down -> act = TICK; x = 0; y = 1
	:: CRASHING && !down -> act = CRASH; x = 0; y = 0
#ifdef REPLAYED
	:: down -> act = TICK; x = 0; y = 0	/* let outages last */
#endif
	EACH_MACHINE(MAY_MOVE_TO_2, DONE, 2)
	EACH_HOST(MAY_RESTORE, RESTORE, 0)
	EACH_MACHINE(MAY_DEFER, DEFER, 0)
	EACH_HOST(MAY_DEGRADE, ORDER, DEGRADE)
	EACH_HOST(MAY_SERVICE, ORDER, SERVICE)
	:: TIMELY && !down -> act = TICK; x = 0; y = 2
	EACH_HOST(MAY_FAIL, ORDER, FAIL)
	EACH_MACHINE(MAY_END, DONE, host[x])
	:: down -> act = RECOVER; x = 0; y = 0
	EACH_HOST(MAY_LOOK, LOOK, 0)
#ifdef REAL
	:: TIMELY -> act = WAIT; x = 0; y = 0
#endif
	fi
}

inline place(h, kind) {
	if
	:: !IS_ORDERED(h, kind) -> refused = 1
	:: else ->
#ifdef ORDERS
		left--;
#endif
		working[h] = 0;
		for (m : 0 .. MACHINES - 1) {
			if
			:: host[m] == h -> set_free(m); share[m] = QUEUED
			:: else
			fi
		}
		order[h] = kind;
		if
		:: kind == FAIL -> state[h] = FAILED
		:: kind == DEGRADE -> state[h] = DEGRADED
		:: else
		fi
	fi
}

inline cancel(h) {
	for (m : 0 .. MACHINES - 1) {
		if
		:: MINE(m, h) -> set_free(m)
		:: else
		fi
	}
	close(h)
}

/* A deferral moves all events of a stage, because they start together; in an evacuation, one event. */
inline defer(z) {
	span = not_before[z] + DEFERRAL;
	deferred[z] = 1;
	for (m : 0 .. MACHINES - 1) {
		if
		:: MINE(m, host[z]) && share[m] == SCHEDULED && not_before[m] < span && (m == z || !LEAVES(z, host[z])) ->
			if
			:: moved[m] > 0 -> move(m, span)
			:: else -> not_before[m] = span
			fi
		:: else
		fi
	}
}

#define NEXT_DUE(m) (!armed[m] && not_before[m] > MINIMUM(m) -> not_before[m] - MINIMUM(m) : (not_before[m] > 0 -> not_before[m] : 1))

/* The ticks until the engine has work again, so that a week of notice passes in one action. */
inline find_next_due() {
	span = NEVER;
	for (m : 0 .. MACHINES - 1) {
		if
		:: share[m] == SCHEDULED && NEXT_DUE(m) < span -> span = NEXT_DUE(m)
		:: else
		fi
	}
	span = (span == NEVER -> 1 : span)
}

inline pass_time() {
	ticks = span;
	for (m : 0 .. MACHINES - 1) {
		if
		:: share[m] == SCHEDULED ->
			not_before[m] = (not_before[m] - span < -STALE -> -STALE : not_before[m] - span);
			told[m] = (told[m] + span > REBOOT_NOTICE -> REBOOT_NOTICE : told[m] + span)
		:: share[m] == STARTED && LEAVES(m, host[m]) ->
			not_before[m] = (not_before[m] - span < 1 -> 1 : not_before[m] - span)
		:: else
		fi
	}
}

/* Everything is saved: a crash loses only time. */
inline crash() {
#ifdef MUTANT_4_FORGOTTEN
	for (m : 0 .. MACHINES - 1) {
		armed[m] = armed[m] && share[m] != SCHEDULED
	}
#endif
	skip
}

/* Do the chosen action. Then look at its order, as a use case does, or at n orders from host h on. */
inline perform() {
	refused = 0; n = 1; h = x;
	if
	:: act == ORDER -> place(x, y)
	:: act == CANCEL && IS_CANCELLED(x) -> cancel(x); n = 0
	:: act == CANCEL && !IS_CANCELLED(x) -> refused = 1
	:: act == RESTORE && IS_RESTORED(x) ->
		if
		:: order[x] == DEGRADE -> cancel(x)
		:: else
		fi;
		state[x] = OK; n = 0
	:: act == RESTORE && !IS_RESTORED(x) -> refused = 1
	:: act == APPROVE -> approved[x] = 1; h = host[x]
	:: act == DEFER && IS_DEFERRED(x) -> defer(x); h = host[x]
	:: act == DEFER && !IS_DEFERRED(x) -> refused = 1
	:: act == DONE -> h = host[x]; set_free(x); host[x] = y
	:: act == WORKED -> cancel(x); n = 0
	:: act == LOOK -> skip
	:: act == HOLD -> held = 1; n = 0
	:: act == RELEASE -> held = 0; n = 0
	:: act == CRASH -> down = 1; n = 0; crash()
	:: act == RECOVER -> down = 0; n = 3; h = y
	:: act == TICK -> span = 1; pass_time(); h = y; n = (down -> 0 : 3)
	:: act == WAIT -> find_next_due(); pass_time(); x = span; h = y; n = (down -> 0 : 3)
	fi;
	if
	:: refused -> n = 0
	:: else
	fi;
	do
	:: n > 0 -> look(h); h = (h + 1) % 3; n--
	:: else -> break
	od
}

/* Only the order of numbers matters. */
inline count_numbers() {
	for (m : 0 .. MACHINES - 1) {
		place_of[m] = 0;
		for (o : 0 .. MACHINES - 1) {
			place_of[m] = place_of[m] + (number[m] > 0 && number[o] > 0 && host[o] == host[m] && number[o] <= number[m])
		}
	}
	for (m : 0 .. MACHINES - 1) {
		number[m] = place_of[m]
	}
}

/* Normalise irrelevant values, so that equal states compare as equal. */
inline forget() {
	for (m : 0 .. MACHINES - 1) {
		if
		:: armed[m] && share[m] == SCHEDULED -> moved[m] = 0
		:: share[m] == STARTED ->
			approved[m] = 0; deferred[m] = 0; moved[m] = 0; told[m] = 0; number[m] = 0;
			if
			:: !LEAVES(m, host[m]) -> not_before[m] = 0
			:: LEAVES(m, host[m]) && begun[m] -> not_before[m] = LEAVING
			:: else
			fi
		:: else
		fi
	}
}

#ifdef PRINTED
inline print_state() {
	printf("ACT %d %d %d %d %d %d", act, x, y, refused, held, down);
	for (m : 0 .. MACHINES - 1) {
		printf(" %d/%d/%d/%d/%d/%d", host[m], share[m], armed[m], approved[m], deferred[m], not_before[m])
	}
	for (g : 0 .. HOSTS - 1) {
		printf(" %d/%d/%d", order[g], state[g], working[g])
	}
	printf(" end\n")
}
#else
#define print_state() skip
#endif

inline settle() {
	forget();
	count_numbers();
	act = 0
}

#ifdef LIVE
/* Progress: an event starts, or none waits. There are few orders, so a run in which one waits forever ends in a cycle
   without progress: Spin looks for it. Time and hypervisors advance (weak fairness). People may act at any time, or never. */
hidden byte progressed;
hidden byte waiting;

inline once() {
	d_step {
		remember();
		perform();
		progressed = 0; waiting = 0;
		for (m : 0 .. MACHINES - 1) {
			progressed = progressed || STARTS(m);
			waiting = waiting + (share[m] == QUEUED || share[m] == SCHEDULED)
		}
		progressed = progressed || waiting == 0;
		print_state();
		settle()
	}
}

proctype time() {
again:
	atomic {
		if
		:: y = 0
		:: y = 1
		:: y = 2
		fi;
		/* Spin does not restore hidden variables when it backtracks, so set them after the choice. */
		act = TICK; x = 0;
		once();
		if
		:: progressed -> goto progress_in_time
		:: else -> goto again
		fi
	}
progress_in_time:
	goto again
}

proctype hypervisors() {
again:
	atomic {
		if
		EACH_MACHINE(MAY_END, DONE, host[x])
		EACH_MACHINE(MAY_MOVE_TO_0, DONE, 0)
		EACH_MACHINE(MAY_MOVE_TO_1, DONE, 1)
		EACH_MACHINE(MAY_MOVE_TO_2, DONE, 2)
		EACH_HOST(IS_WORKING, WORKED, 0)
		fi;
		once();
		if
		:: progressed -> goto progress_in_work
		:: else -> goto again
		fi
	}
progress_in_work:
	goto again
}

proctype people() {
again:
	atomic {
		if
		EACH_MACHINE(MAY_APPROVE, APPROVE, 0)
		EACH_MACHINE(MAY_DEFER, DEFER, 0)
		EACH_HOST(MAY_MAINTAIN, ORDER, MAINTENANCE)
		EACH_HOST(MAY_DEGRADE, ORDER, DEGRADE)
		EACH_HOST(MAY_SERVICE, ORDER, SERVICE)
		:: goto again
		fi;
		once();
		if
		:: progressed -> goto progress_by_people
		:: else -> goto again
		fi
	}
progress_by_people:
	goto again
}
#endif

init {
	d_step {
		/* Host 0 carries two update domains of A, so its order has two stages. */
		host[0] = 0; host[1] = 0; host[3] = 0;
		host[2] = 1; host[4] = 1;
		host[5] = 2
	}
#ifdef LIVE
	atomic {
		run time();
		run hypervisors();
		run people()
	}
#else
	do
	:: atomic {
		choose();
		d_step {
			remember();
			perform();
			check_rules();
			check_witness();
			print_state();
			settle()
		}
	}
	od
#endif
}
