"""All rules that one change can break."""

from tests.rules import arming, events, hosts, orders, timing
from tests.rules.change import Change

RULES = (
    timing.notice_is_kept,
    events.events_only_move_forward,
    events.departures_have_a_record,
    events.resources_are_of_one_group_and_domain,
    arming.update_domains_are_not_armed_together,
    arming.events_are_armed_in_time,
    arming.stages_are_armed_completely,
    events.moved_times_have_a_record,
    events.recommendations_never_start,
    orders.stages_start_completely,
    orders.stages_have_one_domain_of_a_group,
    hosts.work_on_whole_hosts_begins_once,
    hosts.work_on_hosts_is_announced_to_all_machines,
    hosts.concurrent_moves_are_limited,
    hosts.cordons_end_with_their_order,
    orders.machines_are_free_when_their_stage_starts,
    orders.machines_have_one_step_at_a_time,
    hosts.machines_move_to_sound_hosts,
    hosts.hosts_are_fenced_before_machines_leave,
    hosts.machines_stay_on_hosts_that_are_not_fenced,
    hosts.nothing_starts_on_a_failed_host,
    events.incarnations_count_changes,
    orders.finished_steps_stay_finished,
    orders.attempts_are_begun_once,
    events.announced_work_needs_a_started_event,
    orders.nothing_begins_in_an_order_that_winds_down,
    timing.windows_are_respected,
    arming.budgets_are_respected,
    timing.promises_are_counted,
)


def violations(change: Change) -> list[str]:
    """Return the rules that a change breaks, with the details."""
    return [f"{rule.__name__}: {what}" for rule in RULES for what in rule(change)]
