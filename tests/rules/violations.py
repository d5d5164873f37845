"""All rules that one change can break."""

from tests.rules import arming, events, hosts, orders, timing
from tests.rules.change import Change

RULES = (
    timing.notice_is_kept,
    events.events_only_move_forward,
    events.what_leaves_has_a_record,
    events.resources_are_of_one_group_and_domain,
    arming.update_domains_are_not_armed_together,
    arming.events_are_armed_in_time,
    arming.stages_are_armed_whole,
    events.what_moves_has_a_record,
    events.hints_never_start,
    orders.stages_start_whole,
    orders.stages_have_one_domain_of_a_group,
    hosts.whole_hosts_are_done_in_one_go,
    hosts.hosts_are_worked_on_with_everybody_told,
    hosts.moves_go_a_few_at_a_time,
    hosts.cordons_are_given_back,
    orders.machines_are_free_when_their_stage_starts,
    orders.machines_have_one_step_at_a_time,
    hosts.machines_move_to_sound_hosts,
    hosts.hosts_are_fenced_before_others_take_over,
    hosts.machines_stay_on_hosts_that_are_not_fenced,
    hosts.nothing_is_brought_up_on_a_failed_host,
    events.incarnations_count_changes,
    orders.finished_steps_stay_finished,
    orders.attempts_are_begun_once,
    events.what_was_announced_stays_announced,
    orders.nothing_begins_that_winds_down,
    timing.windows_are_heeded,
    arming.budgets_are_heeded,
    timing.promises_are_counted,
)


def violations(change: Change) -> list[str]:
    """Return which rules a change breaks, and how."""
    return [f"{rule.__name__}: {what}" for rule in RULES for what in rule(change)]
