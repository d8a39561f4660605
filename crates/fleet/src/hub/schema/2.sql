-- Columns of beats: challenges, the head of the log, permits on the hubs' own clocks; members' texts as JSON.

ALTER TABLE governors
    DROP COLUMN boot_at,
    DROP COLUMN boot_before,
    ADD COLUMN boots_before jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN salt text NOT NULL DEFAULT '',
    -- The epochs in which the run has echoed a nonce, and for which it has reported its parts of shared limits.
    ADD COLUMN met bigint NOT NULL DEFAULT 0,
    ADD COLUMN reported bigint NOT NULL DEFAULT 0,
    -- The log at the last beat.
    ADD COLUMN head_size bigint NOT NULL DEFAULT 0,
    ADD COLUMN head_root text NOT NULL DEFAULT '',
    -- The hubs whose clocks count the permits.
    ADD COLUMN permit_hub text NOT NULL DEFAULT '',
    ADD COLUMN former_hub text NOT NULL DEFAULT '',
    -- Nobody holds anything of shared limits before the first run.
    ADD COLUMN has_left boolean NOT NULL DEFAULT true,
    ALTER COLUMN refused DROP DEFAULT,
    ALTER COLUMN refused TYPE jsonb USING '{}',
    ALTER COLUMN refused SET DEFAULT '{}';
-- Runs and permits of before are on other clocks: every run shows itself again.
UPDATE governors SET boot = '', nonce = '', nonce_before = '', number = 0, has_left = boot = '', permit_until = 0, former_until = 0;

-- The time on the clock of each run of a hub, as it was stored last.
CREATE TABLE hubs (id text PRIMARY KEY, at bigint NOT NULL);
