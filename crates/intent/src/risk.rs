//! The risk rubric: the risk level of an act, and the reasons.

use std::cell::Cell;

use rulekeep_types::{Operation, Resource, RiskLevel};

use super::reading::{Act, Facts};
use super::sign::{Sign, Signs};

/// The risk level of an act, and the signs that caused it.
pub(crate) struct Assessment {
    pub level: RiskLevel,
    pub causes: Signs,
}

/// Assesses an act by the rubric's table, and raises it once if a raising condition holds that the table has not
/// counted.
pub(crate) fn assess(act: &Act, facts: &Facts) -> Assessment {
    let signs = act.signs.with(facts.signs);
    let case = Case { act, facts, signs, causes: Cell::default() };
    let mut level = match act.risk {
        Some(level) => {
            case.name_reasons();
            level
        }
        None => case.learned(case.by_table()),
    };
    level = level.max(case.unclear_floor()).max(case.leak_floor());
    if case.must_raise(level) {
        level = level.raised();
    }
    Assessment { level, causes: case.causes.get() }
}

struct Case<'a> {
    act: &'a Act,
    facts: &'a Facts,
    signs: Signs,
    causes: Cell<Signs>,
}

impl Case<'_> {
    /// Returns whether the sign is present, and records it as a cause if so.
    fn shows(&self, sign: Sign) -> bool {
        let has = self.signs.has(sign);
        if has {
            self.cause(sign);
        }
        has
    }

    fn cause(&self, sign: Sign) {
        let mut causes = self.causes.get();
        causes.add(sign);
        self.causes.set(causes);
    }

    /// Records the reasons of a stated level: those of the act's own signs that the table would have counted.
    fn name_reasons(&self) {
        // For other operations bulk still raises the level, and is recorded then.
        let takes_away = matches!(self.act.operation, Operation::Delete | Operation::Admin);
        for sign in [Sign::Force, Sign::Whole, Sign::Control, Sign::Administrator, Sign::Downloaded, Sign::Bulk] {
            if self.act.signs.has(sign) && (sign != Sign::Bulk || takes_away) {
                self.cause(sign);
            }
        }
    }

    /// Adjusts the table's level by the risk that the words suggest: they raise it, and lower only a MEDIUM that no
    /// sign supports.
    fn learned(&self, table: RiskLevel) -> RiskLevel {
        let floor = if self.signs.has(Sign::Danger) { RiskLevel::Medium } else { RiskLevel::Low };
        let Some(learned) = self.act.learned else { return table.max(floor) };
        // A payment's risk depends on its sum, if it names one; membership has a ruling of its own.
        let is_payment = self.act.operation == Operation::Transfer && !self.facts.amounts.is_empty();
        if is_payment || self.causes.get().has(Sign::Membership) {
            return table;
        }
        let learned = learned.plain.max(learned.likely.unwrap_or(table).min(table.raised()));
        if learned < table && (table > RiskLevel::Medium || self.causes.get() != Signs::default()) {
            return table;
        }
        if learned == RiskLevel::Low && floor > learned {
            self.shows(Sign::Danger);
        }
        if table > RiskLevel::Medium { table.max(learned) } else { learned.max(floor) }
    }

    fn unclear_floor(&self) -> RiskLevel {
        self.shows(Sign::Contradiction);
        self.shows(Sign::OperatorSet);
        if self.shows(Sign::PoisonedTool) && !self.act.is_set {
            return RiskLevel::High;
        }
        let is_unsure = [Sign::Unclear, Sign::NotInCatalogue, Sign::ToolChanged, Sign::Destructive]
            .into_iter()
            .fold(false, |unsure, sign| unsure | self.shows(sign));
        if is_unsure { RiskLevel::Medium } else { RiskLevel::Low }
    }

    /// The floor for sensitive data that leaves: sending keys and passwords outside is the most severe; card numbers,
    /// personal numbers and declared confidential data come next.
    fn leak_floor(&self) -> RiskLevel {
        let secret = self.shows(Sign::AccessKey) | self.shows(Sign::PasswordValue);
        let personal = self.shows(Sign::CardNumber) | self.shows(Sign::NationalId);
        let listed = self.shows(Sign::ContactList) | self.shows(Sign::BankAccount) | self.shows(Sign::PhoneNumber);
        let declared = self.signs.has(Sign::Declared);
        // An act that was not understood may send as well.
        let sends = matches!(self.act.operation, Operation::Send | Operation::Unknown);
        // A ticket that contains a key shows it to everybody who can read tickets.
        if secret && (self.act.operation, self.act.resource) == (Operation::Write, Resource::Task) {
            return RiskLevel::High;
        }
        if !sends || !(secret || personal || listed || declared) {
            return RiskLevel::Low;
        }
        let outside = self.signs.has(Sign::Outside)
            || matches!(self.act.resource, Resource::Social | Resource::Web | Resource::Email)
            || self.facts.names_outside();
        match (secret, outside) {
            (true, true) => RiskLevel::Critical,
            (true, false) => RiskLevel::High,
            (false, true) if personal || declared => {
                self.shows(Sign::Declared);
                RiskLevel::High
            }
            _ => RiskLevel::Low,
        }
    }

    fn by_table(&self) -> RiskLevel {
        match self.act.operation {
            Operation::Read => self.read(),
            Operation::Write => self.write(),
            Operation::Delete => self.delete(),
            Operation::Send => self.send(),
            Operation::Execute => self.execute(),
            Operation::Transfer => self.transfer(),
            Operation::Admin => self.admin(),
            Operation::Unknown => RiskLevel::Medium,
        }
    }

    fn read(&self) -> RiskLevel {
        use Resource as R;
        match self.act.resource {
            R::Credential if self.shows(Sign::PublicPart) && !self.shows(Sign::Secret) => RiskLevel::Low,
            R::Credential if self.shows(Sign::Bulk) => RiskLevel::Critical,
            R::Credential => RiskLevel::High,
            R::Customer | R::Health if self.shows(Sign::Bulk) || self.shows(Sign::ManyRecords) => RiskLevel::High,
            // A team channel is visible to the team; an inbox is private.
            R::Message if self.shows(Sign::Team) => RiskLevel::Low,
            R::Customer | R::Health | R::Payment | R::Email | R::Message | R::Unknown => RiskLevel::Medium,
            R::Contact if self.shows(Sign::Bulk) => RiskLevel::Medium,
            R::Analytics if self.shows(Sign::Logs) => RiskLevel::Medium,
            R::Database if self.shows(Sign::Sensitive) => RiskLevel::Medium,
            _ => RiskLevel::Low,
        }
    }

    fn write(&self) -> RiskLevel {
        use Resource as R;
        match self.act.resource {
            R::Health => RiskLevel::High,
            // This overwrites history that others rely on.
            R::Code if self.act.verb == "force_push" && self.shows(Sign::Force) => RiskLevel::High,
            R::Payment if self.shows(Sign::MoneyRoute) => RiskLevel::High,
            R::Config | R::Database if self.shows(Sign::Production) && self.shows(Sign::Bulk) => RiskLevel::Critical,
            R::Config | R::Database if self.shows(Sign::Production) => RiskLevel::High,
            R::Calendar if self.facts.names_address() => {
                self.cause(Sign::Outside);
                RiskLevel::Medium
            }
            R::Customer
            | R::Account
            | R::Database
            | R::Config
            | R::Code
            | R::System
            | R::Network
            | R::Device
            | R::Payment
            | R::Credential
            | R::Permission
            | R::Web
            | R::Social
            | R::Analytics
            | R::Model
            | R::Unknown => RiskLevel::Medium,
            _ => RiskLevel::Low,
        }
    }

    fn delete(&self) -> RiskLevel {
        use Resource as R;
        let wide = self.shows(Sign::Bulk)
            | self.shows(Sign::Force)
            | self.shows(Sign::ManyRecords)
            | self.shows(Sign::ManyRecipients);
        let whole = self.shows(Sign::Whole);
        match self.act.resource {
            R::System | R::Database | R::File if whole && self.shows(Sign::Production) => RiskLevel::Critical,
            R::System if whole => RiskLevel::Critical,
            R::File | R::Database | R::System if self.shows(Sign::Backup) && wide => RiskLevel::Critical,
            _ if wide || whole => RiskLevel::High,
            // A watch list or a limit of an account is not the account.
            R::Account if !self.names(ACCOUNT_PARTS) => RiskLevel::High,
            R::Credential | R::Health | R::Customer => RiskLevel::High,
            R::Database if self.names(&["database", "schema", "db", "collection", "table"]) => RiskLevel::High,
            R::Code if self.names(&["branch", "repository", "repo", "git_history", "remote_repository"]) => {
                RiskLevel::High
            }
            _ if self.shows(Sign::Backup) => RiskLevel::High,
            R::Document | R::File | R::Email | R::Order | R::Task if self.shows(Sign::Draft) => RiskLevel::Low,
            _ => RiskLevel::Medium,
        }
    }

    fn send(&self) -> RiskLevel {
        use Resource as R;
        let secret = self.shows(Sign::Secret) || self.act.resource == R::Credential;
        let outside = self.signs.has(Sign::Outside)
            || matches!(self.act.resource, R::Social | R::Web | R::Email)
            || self.facts.names_outside();
        if secret && outside {
            self.shows(Sign::Outside);
            return RiskLevel::Critical;
        }
        if secret || self.shows(Sign::Sensitive) || self.shows(Sign::ManyRecipients) && outside {
            return RiskLevel::High;
        }
        match self.act.resource {
            R::Payment | R::Health | R::Customer => RiskLevel::High,
            R::Message if self.shows(Sign::Team) && !self.signs.has(Sign::Outside) => RiskLevel::Low,
            _ => {
                self.shows(Sign::Outside);
                RiskLevel::Medium
            }
        }
    }

    fn execute(&self) -> RiskLevel {
        use Resource as R;
        if self.shows(Sign::UnseenInstructions) || self.shows(Sign::Downloaded) {
            return RiskLevel::High;
        }
        if self.shows(Sign::Whole) {
            return RiskLevel::High;
        }
        if self.shows(Sign::DryRun) || self.shows(Sign::Harmless) {
            return RiskLevel::Low;
        }
        let wide = self.signs.has(Sign::Bulk) && !self.signs.has(Sign::Upkeep);
        match self.act.resource {
            R::System if self.shows(Sign::Production) && wide => RiskLevel::Critical,
            R::System | R::Code if self.shows(Sign::Production) => RiskLevel::High,
            R::Media | R::Information | R::Model => RiskLevel::Low,
            R::Device if self.act.verb == "lock" => RiskLevel::Low,
            R::Unknown | R::Permission | R::Payment | R::Customer | R::Health => RiskLevel::High,
            _ => RiskLevel::Medium,
        }
    }

    fn transfer(&self) -> RiskLevel {
        if self.shows(Sign::AllMoney) || self.shows(Sign::NewParty) {
            return RiskLevel::Critical;
        }
        let total = self.facts.total().map(|(sum, _)| sum);
        if [total, self.facts.largest_amount()].into_iter().flatten().any(|amount| amount >= 10_000.0) {
            return RiskLevel::Critical;
        }
        match total {
            Some(amount)
                if amount <= 100.0 && (self.act.resource != Resource::Payment || !self.signs.has(Sign::Bulk)) =>
            {
                RiskLevel::Medium
            }
            Some(_) => RiskLevel::High,
            None if !self.facts.amounts.is_empty() => RiskLevel::High,
            None => match self.act.resource {
                Resource::Order | Resource::Booking if self.shows(Sign::Everyday) => RiskLevel::Medium,
                Resource::Booking if self.is_free_reservation() => RiskLevel::Medium,
                _ => RiskLevel::High,
            },
        }
    }

    /// Returns whether a reservation costs nothing yet: a restaurant table or a doctor's appointment, but not a room,
    /// a flight or a ticket.
    fn is_free_reservation(&self) -> bool {
        self.shows(Sign::FreeReservation)
            && !self.names(&["hotel", "hotel_room", "room", "flight", "ticket", "concert_ticket"])
    }

    fn admin(&self) -> RiskLevel {
        use Resource as R;
        if self.shows(Sign::Administrator) || self.shows(Sign::Control) {
            return RiskLevel::Critical;
        }
        if self.shows(Sign::OpenLink) || self.shows(Sign::TakesAccess) {
            return RiskLevel::High;
        }
        match self.act.resource {
            R::Account => RiskLevel::Medium,
            R::Permission if self.is_membership() && !self.shows(Sign::Bulk) && !self.shows(Sign::ManyPeople) => {
                self.cause(Sign::Membership);
                RiskLevel::Medium
            }
            _ => RiskLevel::High,
        }
    }

    /// Returns whether somebody is added to a channel, a team or a workspace.
    fn is_membership(&self) -> bool {
        self.signs.has(Sign::Membership)
            || matches!(self.act.verb.as_str(), "add" | "invite" | "join") && self.signs.has(Sign::Team)
    }

    /// Returns whether a raising condition holds that the table has not counted.
    fn must_raise(&self, level: RiskLevel) -> bool {
        let mut raise = false;
        for sign in
            [Sign::Override, Sign::Conceal, Sign::HiddenCharacters, Sign::MixedScripts, Sign::Disguised, Sign::Encoded]
        {
            raise |= self.shows(sign);
        }
        let operation = self.act.operation;
        let reads = operation == Operation::Read;
        if !reads && self.signs.has(Sign::Production) && !self.causes.get().has(Sign::Production) {
            raise |= self.shows(Sign::Production);
        }
        let bulk = self.signs.has(Sign::Bulk) || self.signs.has(Sign::ManyRecords);
        let counted = self.causes.get().has(Sign::Bulk) || self.causes.get().has(Sign::ManyRecords);
        if bulk && !counted && !self.signs.has(Sign::Upkeep) && self.bulk_matters() && level < RiskLevel::Critical {
            self.cause(if self.signs.has(Sign::Bulk) { Sign::Bulk } else { Sign::ManyRecords });
            raise = true;
        }
        raise
    }

    /// Returns whether "all" counts: over other people's data and over the reach of an effect, but not for a listing
    /// of one's own items or the parts of a purchase.
    fn bulk_matters(&self) -> bool {
        use Resource as R;
        match self.act.operation {
            Operation::Read => matches!(self.act.resource, R::Customer | R::Health | R::Credential),
            Operation::Write => matches!(
                self.act.resource,
                R::Customer | R::Account | R::Database | R::Payment | R::Permission | R::Credential | R::Config
            ),
            Operation::Send => !self.signs.has(Sign::Team),
            Operation::Execute => {
                matches!(
                    self.act.verb.as_str(),
                    "stop" | "restart" | "reboot" | "kill" | "terminate" | "deploy" | "shut_down" | "halt" | "suspend"
                ) && matches!(self.act.resource, R::System | R::Network)
                    && self.act.risk.is_none()
            }
            Operation::Delete | Operation::Admin => self.act.risk.is_none(),
            Operation::Transfer | Operation::Unknown => false,
        }
    }

    fn names(&self, nouns: &[&str]) -> bool {
        nouns.contains(&self.act.noun.as_str())
    }
}

/// Parts of an account that can be deleted without it.
const ACCOUNT_PARTS: &[&str] = &[
    "watchlist",
    "watch_list",
    "budget",
    "budget_limit",
    "spending_limit",
    "profile_picture",
    "saved_card",
    "username",
];

/// The text of a table cell for `riskFactors`.
pub(crate) fn cell_text(operation: Operation, resource: Resource) -> &'static str {
    match operation {
        Operation::Read => match resource {
            Resource::Credential => "reads a credential",
            Resource::Customer | Resource::Contact | Resource::Health => "reads personal data",
            Resource::Payment => "reads payment data",
            Resource::Email | Resource::Message => "reads private messages",
            _ => "reads",
        },
        Operation::Write => "creates or changes something",
        Operation::Delete => "removes something",
        Operation::Send => "puts content in front of somebody else",
        Operation::Execute => "makes a machine or device act",
        Operation::Transfer => "moves money or commits to pay",
        Operation::Admin => "changes who may do what",
        Operation::Unknown => "was not understood",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(resource: Resource, operation: Operation, signs: &[Sign], amount: Option<f64>) -> RiskLevel {
        let mut act = Act::new("do", "thing", resource, operation, 0.9);
        for &sign in signs {
            act.signs.add(sign);
        }
        let mut facts = Facts::default();
        if let Some(amount) = amount {
            facts.note_amount(amount, None);
        }
        assess(&act, &facts).level
    }

    #[test]
    fn each_cell_of_the_rubric_has_its_level() {
        use Operation as O;
        use Resource as R;
        use RiskLevel::{Critical, High, Low, Medium};
        for (resource, operation, signs, amount, expected) in [
            (R::Information, O::Read, &[][..], None, Low),
            (R::Email, O::Read, &[], None, Medium),
            (R::Customer, O::Read, &[Sign::Bulk], None, High),
            (R::Credential, O::Read, &[], None, High),
            (R::Credential, O::Read, &[Sign::Bulk], None, Critical),
            (R::Credential, O::Read, &[Sign::PublicPart], None, Low),
            (R::Calendar, O::Write, &[], None, Low),
            (R::Config, O::Write, &[], None, Medium),
            (R::Config, O::Write, &[Sign::Production], None, High),
            (R::Database, O::Write, &[Sign::Production, Sign::Bulk], None, Critical),
            (R::File, O::Delete, &[], None, Medium),
            (R::File, O::Delete, &[Sign::Bulk], None, High),
            (R::Account, O::Delete, &[], None, High),
            (R::Message, O::Send, &[Sign::Team], None, Low),
            (R::Email, O::Send, &[], None, Medium),
            (R::Email, O::Send, &[Sign::Sensitive], None, High),
            (R::Credential, O::Send, &[Sign::Outside], None, Critical),
            (R::System, O::Execute, &[], None, Medium),
            (R::System, O::Execute, &[Sign::Production], None, High),
            (R::Payment, O::Transfer, &[], None, High),
            (R::Payment, O::Transfer, &[], Some(40.0), Medium),
            (R::Payment, O::Transfer, &[], Some(500.0), High),
            (R::Payment, O::Transfer, &[], Some(10_000.0), Critical),
            (R::Permission, O::Admin, &[], None, High),
            (R::Permission, O::Admin, &[Sign::Membership], None, Medium),
            (R::Permission, O::Admin, &[Sign::Administrator], None, Critical),
        ] {
            assert_eq!(
                level(resource, operation, signs, amount),
                expected,
                "{resource}:{operation} {signs:?} {amount:?}"
            );
        }
    }

    #[test]
    fn trying_to_override_or_to_hide_raises_once() {
        let plain = level(Resource::File, Operation::Delete, &[], None);
        assert_eq!(level(Resource::File, Operation::Delete, &[Sign::Override, Sign::Conceal], None), plain.raised());
    }
}
