/* The rules, as assertions over the state before and after one action. They share only the state with
   engine.pml, and derive everything else again. */

/* The asserted rules: one bit each for 1, 4, 5 and 11. A mutant of a rule must be caught by that rule alone. */
#ifndef RULES
#define RULES 15
#endif
#define RULE_1 (RULES & 1)
#define RULE_4 (RULES & 2)
#define RULE_5 (RULES & 4)
#define RULE_11 (RULES & 8)

hidden byte was_share[MACHINES];
hidden byte was_armed[MACHINES];
hidden short was_not_before[MACHINES];
hidden byte was_working[HOSTS];
hidden short ticks;	/* the ticks of this action */

#define NEW(m) (announced[m] || was_share[m] < SCHEDULED)
#define STARTS(m) (share[m] == STARTED && (NEW(m) || was_share[m] == SCHEDULED))
#define DISTURBED(m) (share[m] == STARTED || (share[m] == SCHEDULED && armed[m]))
#define BEGINS(m) (DISTURBED(m) && (NEW(m) || !was_armed[m]))

inline remember() {
	for (m : 0 .. MACHINES - 1) {
		was_share[m] = share[m];
		was_armed[m] = armed[m];
		was_not_before[m] = not_before[m];
		announced[m] = 0; begun[m] = 0
	}
	for (g : 0 .. HOSTS - 1) {
		was_working[g] = working[g]
	}
	ticks = 0
}

/* Rule 1: full notice; an early start only after an approval or a failure of the host; NotBefore never moves to an earlier time. */
inline check_notice() {
	for (m : 0 .. MACHINES - 1) {
		if
		:: LISTED(m) && !EXEMPT(m) ->
			assert(!announced[m] || not_before[m] >= MINIMUM(m));
			assert(!STARTS(m) || approved[m] || (not_before[m] <= 0 && told[m] >= MINIMUM(m)));
			assert(share[m] != SCHEDULED || NEW(m) || not_before[m] >= was_not_before[m] - ticks)
		:: else
		fi
	}
}

/* Rule 4: no two update domains of a group are armed or started together, except by failures, and none is armed during those.
   An armed event stays armed. The events of a stage are armed together. */
inline check_domains() {
	for (m : 0 .. MACHINES - 1) {
		assert(!(share[m] == SCHEDULED && !NEW(m) && was_armed[m]) || armed[m]);
		for (o : 0 .. MACHINES - 1) {
			assert(!(STARTS_WITH_HOST(m, host[o]) && STARTS_WITH_HOST(o, host[o]) && share[m] == SCHEDULED && share[o] == SCHEDULED)
				|| armed[m] == armed[o]);
			if
			:: m != o && GROUP(m) == GROUP(o) && DISTURBED(m) && DISTURBED(o) && !EXEMPT(m) ->
				assert(EXEMPT(o));
				assert(!BEGINS(m))
			:: else
			fi
		}
	}
}

/* Rule 5: stages start completely, with armed events. Events that start one by one stay within the limit of the host. Work on
   a host begins with at most one update domain of each group there, and each machine has a started event. */
inline check_stages() {
	for (m : 0 .. MACHINES - 1) {
		assert(!STARTS(m) || (armed[m] && (approved[m] || not_before[m] <= 0)));
		for (o : 0 .. MACHINES - 1) {
			assert(!(MINE(m, host[o]) && !LEAVES(m, host[m]) && !LEAVES(o, host[o]) && share[m] == SCHEDULED && share[o] == STARTED));
			if
			:: m != o && host[m] == host[o] && working[host[m]] && !was_working[host[m]] ->
				assert(GROUP(m) != GROUP(o))
			:: else
			fi
		}
		assert(!(working[host[m]] && !was_working[host[m]] && share[m] != STARTED))
	}
	for (g : 0 .. HOSTS - 1) {
		running = 0;
		for (m : 0 .. MACHINES - 1) {
			running = running + (MINE(m, g) && LEAVES(m, g) && share[m] == STARTED)
		}
		assert(running <= AT_ONCE)
	}
}

/* Rule 11: no stale event starts, and none is scheduled after the engine has looked. */
inline check_staleness() {
	for (m : 0 .. MACHINES - 1) {
		assert(!STARTS(m) || EXEMPT(m) || not_before[m] > -STALE);
		assert(ticks == 0 || down || share[m] != SCHEDULED || not_before[m] > -STALE)
	}
}

inline check_rules() {
	if
	:: RULE_1 -> check_notice()
	:: else
	fi;
	if
	:: RULE_4 -> check_domains()
	:: else
	fi;
	if
	:: RULE_5 -> check_stages()
	:: else
	fi;
	if
	:: RULE_11 -> check_staleness()
	:: else
	fi
}

/* Situations that a search must reach to prove anything: WITNESS names one, which is asserted never to occur. */
#ifndef WITNESS
#define WITNESS 0
#endif
inline check_witness() {
	for (m : 0 .. MACHINES - 1) {
		/* 1: arming was refused, and NotBefore moved */
		assert(WITNESS != 1 || !(share[m] == SCHEDULED && !armed[m] && !NEW(m) && order[host[m]] == DEGRADE && !deferred[m]
			&& not_before[m] > was_not_before[m] - ticks));
		/* 2: withdrawn and announced again */
		assert(WITNESS != 2 || !(was_share[m] == SCHEDULED && announced[m]));
		/* 3: the second stage of an order started */
		assert(WITNESS != 3 || !(m == 1 && STARTS(m) && order[0] == MAINTENANCE && share[0] == FREE && host[0] == 0));
		/* 4: an approved event starts long before its NotBefore */
		assert(WITNESS != 4 || !(STARTS(m) && approved[m] && not_before[m] > REBOOT_NOTICE));
		/* 5: work on a host starts while a machine stays */
		assert(WITNESS != 5 || !(working[host[m]] && share[m] == STARTED && STAYS(m)));
		/* 6: an evacuated machine waits for a slot */
		assert(WITNESS != 6 || !(share[m] == SCHEDULED && LEAVES(m, host[m]) && not_before[m] > was_not_before[m] - ticks && !NEW(m)));
		/* 7: an update domain fails while another is armed */
		for (o : 0 .. MACHINES - 1) {
			assert(WITNESS != 7 || !(m != o && GROUP(m) == GROUP(o) && LISTED(m) && LISTED(o) && armed[m] && EXEMPT(o) && !EXEMPT(m)));
			/* 8: two degraded hosts are announced to one group together */
			assert(WITNESS != 8 || !(m != o && GROUP(m) == GROUP(o) && LISTED(m) && LISTED(o) && host[m] != host[o]
				&& order[host[m]] == DEGRADE && order[host[o]] == DEGRADE))
		}
	}
}
