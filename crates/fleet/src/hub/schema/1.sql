-- Everything that the members of an organisation share. Times are milliseconds since 1970, UTC; amounts are millionths.

CREATE TABLE orders (
    seq bigint PRIMARY KEY,
    body text NOT NULL,
    signatures text NOT NULL,
    at bigint NOT NULL
);

CREATE TABLE invitations (id text PRIMARY KEY, used integer NOT NULL);

CREATE TABLE governors (
    id text PRIMARY KEY,
    key text NOT NULL,
    groups text[] NOT NULL,
    boot text NOT NULL DEFAULT '',
    boot_before text NOT NULL DEFAULT '',
    -- The governor's time of the first beat of the run, and the number of the last one.
    boot_at bigint NOT NULL DEFAULT 0,
    number bigint NOT NULL DEFAULT 0,
    nonce text NOT NULL DEFAULT '',
    nonce_before text NOT NULL DEFAULT '',
    order_seq bigint NOT NULL DEFAULT 0,
    refused text NOT NULL DEFAULT '{}',
    open_actions bigint NOT NULL DEFAULT 0,
    size bigint NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '',
    anchored_at bigint NOT NULL DEFAULT 0,
    copied bigint NOT NULL DEFAULT 0,
    seen_at bigint NOT NULL DEFAULT 0,
    skew_ms bigint NOT NULL DEFAULT 0,
    permit_until bigint NOT NULL DEFAULT 0,
    -- The newest order that came with the last permit, and the end of the last permit without it.
    permit_order bigint NOT NULL DEFAULT 0,
    former_until bigint NOT NULL DEFAULT 0,
    is_shown boolean NOT NULL DEFAULT false,
    -- Why it gets no permit, until an order readmits it.
    trouble text NOT NULL DEFAULT ''
);

CREATE TABLE rollouts (order_seq bigint PRIMARY KEY, stage integer NOT NULL, since bigint NOT NULL, paused text NOT NULL);

CREATE TABLE budgets (counter text PRIMARY KEY, taken bigint NOT NULL);

-- Parts of shared limits that processes got: the JSON of the type Grant, and what is asked about.
CREATE TABLE grants (
    governor text NOT NULL,
    boot text NOT NULL,
    number bigint NOT NULL,
    counter text NOT NULL,
    is_lease boolean NOT NULL,
    -- What counts against the limit: the amount less what was returned.
    counted bigint NOT NULL,
    ends bigint NOT NULL,
    counts_until bigint NOT NULL,
    body text NOT NULL,
    is_recalled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (governor, boot, number, counter)
);
CREATE INDEX grants_by_end ON grants (counter, counts_until);

-- Governors that have not reported what they hold since the newest epoch began, with the run that is expected to know.
CREATE TABLE fence (governor text PRIMARY KEY, boot text);

CREATE TABLE records (
    governor text NOT NULL,
    seq bigint NOT NULL,
    id text NOT NULL,
    hash text NOT NULL,
    at bigint NOT NULL,
    agent text NOT NULL,
    decision text NOT NULL,
    risk text NOT NULL,
    body text NOT NULL,
    path text NOT NULL,
    size bigint NOT NULL,
    -- A number comes twice where a governor was readmitted with another log.
    PRIMARY KEY (governor, seq, hash)
);
CREATE INDEX records_by_agent ON records (agent, at);
CREATE INDEX records_by_time ON records (at);
CREATE INDEX records_by_id ON records (id);

-- Leaves that wait for their place in the log.
CREATE TABLE pending (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    subject text NOT NULL,
    size bigint NOT NULL,
    body text NOT NULL
);

CREATE TABLE leaves (
    idx bigint PRIMARY KEY,
    kind text NOT NULL,
    subject text NOT NULL,
    size bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX leaves_by_subject ON leaves (subject, kind, size);

CREATE TABLE tiles (level smallint NOT NULL, n bigint NOT NULL, hashes bytea NOT NULL, PRIMARY KEY (level, n));

CREATE TABLE head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    size bigint NOT NULL,
    root bytea NOT NULL,
    published_size bigint NOT NULL,
    published text NOT NULL
);

-- Lives of the database: a restore or a promotion begins a new one. Numbers grow with time, so that none comes twice.
CREATE TABLE epochs (
    n bigint PRIMARY KEY,
    system text NOT NULL,
    timeline bigint NOT NULL,
    started text NOT NULL,
    at bigint NOT NULL,
    is_verified boolean NOT NULL
);

CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME; END $$;
CREATE TRIGGER orders_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON orders EXECUTE FUNCTION append_only();
CREATE TRIGGER leaves_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON leaves EXECUTE FUNCTION append_only();
