"""The first schema.

This SQL never changes; `store/tables.py` describes the newest schema. Some types differ between databases:
NAME (text that sorts by bytes), NUMBER (the key of a record), BLOB and FALSE.
"""

import re

from alembic import op

revision = "0001"
down_revision = None

# SQLite sorts text by bytes, and only a column of type INTEGER is the row id.
_WORDS = {
    "sqlite": {"NAME": "TEXT", "NUMBER": "INTEGER", "FALSE": "0"},
    "postgresql": {"NAME": 'TEXT COLLATE "C"', "NUMBER": "BIGINT", "BLOB": "BYTEA"},
}

_SCHEMA = """
CREATE TABLE meta (
    id INTEGER NOT NULL, number BIGINT NOT NULL, reached BIGINT, present_at BIGINT, system_at BIGINT,
    beats BIGINT DEFAULT '0' NOT NULL, absences JSON DEFAULT '[]' NOT NULL, time_kind TEXT,
    backup_of BIGINT, grace_until BIGINT, grace_announced_before BIGINT, applied_fleet TEXT,
    defaults JSON DEFAULT '{}' NOT NULL, lineage TEXT NOT NULL, pruned BIGINT DEFAULT '0' NOT NULL,
    pruned_unsaid BIGINT DEFAULT '0' NOT NULL, prune_at BIGINT,
    session_changes BIGINT DEFAULT '0' NOT NULL, settings_version TEXT DEFAULT '' NOT NULL,
    blocked_rollouts INTEGER DEFAULT '0' NOT NULL, forgotten BIGINT DEFAULT '0' NOT NULL,
    pace JSON DEFAULT '{}' NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE tombstones (
    kind TEXT NOT NULL, "key" NAME NOT NULL, number BIGINT NOT NULL,
    PRIMARY KEY (kind, "key")
);
CREATE INDEX tombstones_number ON tombstones (kind, number);

CREATE TABLE projects (
    name NAME NOT NULL, settings JSON DEFAULT '{}' NOT NULL, source NAME DEFAULT 'declared' NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE hosts (
    name NAME NOT NULL, state TEXT NOT NULL, driver TEXT, uri TEXT, at_once INTEGER,
    resources JSON DEFAULT '{}' NOT NULL, labels JSON DEFAULT '{}' NOT NULL,
    bare_metal BOOLEAN DEFAULT FALSE NOT NULL, cordoned_for NAME, source NAME DEFAULT 'declared' NOT NULL,
    unreachable_since BIGINT, rack NAME, carried INTEGER DEFAULT '0' NOT NULL,
    PRIMARY KEY (name)
);
CREATE INDEX hosts_driver ON hosts (driver, name) WHERE driver IS NOT NULL;
CREATE INDEX hosts_rack ON hosts (rack, state, carried, name);
CREATE INDEX hosts_room ON hosts (state, carried, name);
CREATE INDEX hosts_unreachable ON hosts (name) WHERE unreachable_since IS NOT NULL;

CREATE TABLE groups (
    name NAME NOT NULL, project NAME NOT NULL, kind TEXT NOT NULL, update_domains INTEGER NOT NULL,
    born BIGINT NOT NULL, policy JSON DEFAULT '{}' NOT NULL, incarnation BIGINT NOT NULL,
    enabled_at BIGINT, ready_at BIGINT, heard BOOLEAN DEFAULT FALSE NOT NULL,
    source NAME DEFAULT 'declared' NOT NULL, version BIGINT NOT NULL, changed BIGINT NOT NULL,
    PRIMARY KEY (name)
);
CREATE INDEX groups_changed ON groups (changed);
CREATE INDEX groups_listed ON groups (name) WHERE kind != 'standalone';
CREATE INDEX groups_project ON groups (project, name) WHERE kind != 'standalone';
CREATE INDEX groups_ready ON groups (ready_at) WHERE ready_at IS NOT NULL;

CREATE TABLE group_activity (
    group_name NAME NOT NULL, last_active BIGINT NOT NULL,
    PRIMARY KEY (group_name)
);
CREATE INDEX group_activity_oldest ON group_activity (last_active, group_name);

CREATE TABLE machines (
    id NAME NOT NULL, name NAME NOT NULL, "key" NAME NOT NULL, project NAME NOT NULL,
    group_name NAME NOT NULL, host NAME, last_host NAME, bound_for NAME, place NAME,
    update_domain INTEGER NOT NULL, fault_domain INTEGER NOT NULL, priority TEXT NOT NULL,
    state TEXT NOT NULL, network NAME NOT NULL, address NAME, mac TEXT, port INTEGER, tags JSON NOT NULL,
    location TEXT NOT NULL, zone TEXT NOT NULL, size TEXT NOT NULL, os TEXT NOT NULL,
    mobility TEXT DEFAULT 'cold' NOT NULL, resources JSON DEFAULT '{}' NOT NULL,
    labels JSON DEFAULT '{}' NOT NULL, source NAME DEFAULT 'declared' NOT NULL, changed BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT machines_name UNIQUE (project, "key"),
    CONSTRAINT machines_address UNIQUE (network, address),
    CONSTRAINT machines_port UNIQUE (port)
);
CREATE INDEX machines_changed ON machines (changed);
CREATE INDEX machines_group ON machines (group_name, update_domain, state);
CREATE INDEX machines_host ON machines (host);
CREATE INDEX machines_key ON machines ("key");
CREATE INDEX machines_place ON machines (place, group_name, update_domain);
CREATE INDEX machines_state ON machines (state);

CREATE TABLE machine_activity (
    machine_id NAME NOT NULL, last_seen BIGINT NOT NULL,
    PRIMARY KEY (machine_id)
);

CREATE TABLE orders (
    id NAME NOT NULL, number BIGINT NOT NULL, action TEXT NOT NULL, work TEXT, source TEXT NOT NULL,
    project NAME, machine NAME, machine_name NAME, host NAME, "by" TEXT NOT NULL, reason TEXT NOT NULL,
    driver TEXT NOT NULL, terms JSON DEFAULT '{}' NOT NULL, state TEXT NOT NULL, stages JSON NOT NULL,
    host_steps JSON DEFAULT '[]' NOT NULL, waiting JSON NOT NULL, created_at BIGINT NOT NULL,
    announced_at BIGINT, withdrawals INTEGER DEFAULT '0' NOT NULL, ended_at BIGINT, why TEXT NOT NULL,
    due_at BIGINT, heard_at BIGINT,
    PRIMARY KEY (id)
);
CREATE INDEX orders_due ON orders (due_at, number) WHERE due_at IS NOT NULL;
CREATE INDEX orders_ever_on ON orders (host) WHERE host IS NOT NULL;
CREATE INDEX orders_host ON orders (CAST(CASE WHEN (ended_at IS NULL) THEN host END AS TEXT));
CREATE INDEX orders_number ON orders (number, id);
CREATE INDEX orders_open ON orders (state, source, project) WHERE ended_at IS NULL;
CREATE INDEX orders_project ON orders (project, number, id);
CREATE INDEX orders_state ON orders (state, number, id);

CREATE TABLE order_machines (
    machine_id NAME NOT NULL, order_id NAME NOT NULL,
    PRIMARY KEY (machine_id, order_id)
);
CREATE INDEX order_machines_order ON order_machines (order_id);

CREATE TABLE order_waits (
    group_name NAME NOT NULL, order_id NAME NOT NULL,
    PRIMARY KEY (group_name, order_id)
);
CREATE INDEX order_waits_order ON order_waits (order_id);

CREATE TABLE events (
    id NAME NOT NULL, number BIGINT NOT NULL, order_id NAME NOT NULL, stage INTEGER NOT NULL,
    group_name NAME NOT NULL, domain INTEGER NOT NULL, type TEXT NOT NULL, status TEXT NOT NULL,
    source TEXT NOT NULL, description TEXT NOT NULL, duration_seconds BIGINT NOT NULL,
    resources JSON NOT NULL, announced_at BIGINT NOT NULL, not_before BIGINT NOT NULL, armed_at BIGINT,
    started_at BIGINT, ended_at BIGINT, why TEXT NOT NULL, approvals JSON NOT NULL,
    rule TEXT DEFAULT 'any' NOT NULL, "deferred" JSON, postponed JSON, judged BOOLEAN DEFAULT FALSE NOT NULL,
    forgotten BOOLEAN DEFAULT FALSE NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX events_created ON events (number, id);
CREATE INDEX events_ended ON events (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX events_group ON events (CAST(CASE WHEN (ended_at IS NULL) THEN group_name END AS TEXT), domain);
CREATE INDEX events_number ON events (number, id) WHERE ended_at IS NULL;
CREATE INDEX events_order ON events (order_id);
CREATE INDEX events_status ON events (status, not_before) WHERE ended_at IS NULL;

CREATE TABLE event_machines (
    machine_key NAME NOT NULL, event_id NAME NOT NULL,
    PRIMARY KEY (machine_key, event_id)
);
CREATE INDEX event_machines_event ON event_machines (event_id);

CREATE TABLE notices (
    event_id NAME NOT NULL, machine_id NAME NOT NULL, sent_at BIGINT NOT NULL,
    PRIMARY KEY (event_id, machine_id)
);

CREATE TABLE rollouts (
    id NAME NOT NULL, number BIGINT NOT NULL, work TEXT NOT NULL, state TEXT NOT NULL,
    hosts JSON NOT NULL, hosts_at_once INTEGER NOT NULL, gap BIGINT NOT NULL, aborting BOOLEAN NOT NULL,
    waves JSON NOT NULL, given_up JSON NOT NULL, waiting JSON NOT NULL, blocked BOOLEAN NOT NULL,
    terms JSON DEFAULT '{}' NOT NULL, "by" TEXT NOT NULL, reason TEXT NOT NULL,
    created_at BIGINT NOT NULL, ended_at BIGINT, why TEXT NOT NULL, due_at BIGINT,
    PRIMARY KEY (id)
);
CREATE INDEX rollouts_number ON rollouts (number, id);
CREATE INDEX rollouts_open ON rollouts (due_at, number) WHERE ended_at IS NULL;

CREATE TABLE holds (
    id NAME NOT NULL, reason TEXT NOT NULL, "by" TEXT NOT NULL, at BIGINT NOT NULL, project NAME,
    host NAME, abort BOOLEAN DEFAULT FALSE NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE records (
    number NUMBER NOT NULL, at BIGINT NOT NULL, kind TEXT NOT NULL, project NAME, group_name NAME,
    host NAME, machine NAME, machine_key NAME, event_id NAME, order_id NAME, "by" TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (number)
);
CREATE INDEX records_at ON records (at, number);
CREATE INDEX records_event ON records (event_id, number);
CREATE INDEX records_group ON records (group_name, number) WHERE group_name IS NOT NULL;
CREATE INDEX records_host ON records (host, number) WHERE host IS NOT NULL;
CREATE INDEX records_machine ON records (machine_key, number);
CREATE INDEX records_order ON records (order_id, number);
CREATE INDEX records_project ON records (project, number);

CREATE TABLE tallies (
    kind TEXT NOT NULL, machines BIGINT NOT NULL,
    PRIMARY KEY (kind)
);

CREATE TABLE promises (
    project NAME NOT NULL, month NAME NOT NULL, simulated BOOLEAN NOT NULL, kept BIGINT NOT NULL,
    late BIGINT NOT NULL, never BIGINT NOT NULL, broken BIGINT NOT NULL,
    unannounced BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (project, month, simulated)
);

CREATE TABLE tokens (
    digest NAME NOT NULL, number BIGINT NOT NULL, name NAME NOT NULL, role TEXT NOT NULL, project NAME,
    created_at BIGINT NOT NULL, created_by TEXT NOT NULL, expires_at BIGINT, revoked_at BIGINT,
    PRIMARY KEY (digest)
);
CREATE INDEX tokens_number ON tokens (number, digest);

CREATE TABLE sessions (
    digest NAME NOT NULL, token NAME NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    PRIMARY KEY (digest)
);
CREATE INDEX sessions_token ON sessions (token, created_at);

CREATE TABLE answers (
    caller NAME NOT NULL, "key" NAME NOT NULL, request TEXT NOT NULL, status INTEGER NOT NULL,
    salt TEXT NOT NULL, body BLOB, saved_at BIGINT NOT NULL,
    PRIMARY KEY (caller, "key")
);
CREATE INDEX answers_caller ON answers (caller, saved_at);
CREATE INDEX answers_saved_at ON answers (saved_at);

CREATE TABLE webhooks (
    id NAME NOT NULL, number BIGINT NOT NULL, url TEXT NOT NULL, project NAME, owner NAME,
    kinds JSON NOT NULL, secret TEXT NOT NULL, "by" TEXT NOT NULL, created_at BIGINT NOT NULL,
    delivered BIGINT NOT NULL, failures INTEGER NOT NULL, failing_since BIGINT, error TEXT NOT NULL,
    next_try BIGINT,
    PRIMARY KEY (id)
);
CREATE INDEX webhooks_number ON webhooks (number, id);

CREATE TABLE rehearsals (
    project NAME NOT NULL, id NAME NOT NULL, scenario TEXT NOT NULL, machines JSON NOT NULL,
    faults JSON NOT NULL, "by" TEXT NOT NULL, begun_at BIGINT NOT NULL, renewed_at BIGINT NOT NULL,
    ended_by TEXT NOT NULL,
    PRIMARY KEY (project, id)
);
"""


def upgrade() -> None:
    """Make all tables."""
    script = _SCHEMA
    for word, spelling in _WORDS[op.get_bind().dialect.name].items():
        script = re.sub(rf"\b{word}\b", spelling, script)
    for statement in script.strip().rstrip(";").split(";"):
        op.execute(statement)
