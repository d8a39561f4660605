//! Signs: features of a request that affect its risk, each with the text that `riskFactors` shows.

/// Defines the signs, their names in data files, and their texts for people.
macro_rules! signs {
    ($( $(#[$meta:meta])* $name:ident = $word:literal, $text:literal; )+) => {
        /// A feature that affects the risk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Sign { $( $(#[$meta])* $name ),+ }

        impl Sign {
            /// Every sign, in the order in which factors are listed.
            pub(crate) const ALL: &'static [Self] = &[ $( Self::$name ),+ ];

            /// The names in data files.
            pub(crate) const WORDS: &'static [&'static str] = &[$( $word ),+];

            /// The text in `riskFactors`.
            pub(crate) const fn text(self) -> &'static str {
                match self { $( Self::$name => $text ),+ }
            }

            /// The sign with this name in data files.
            pub(crate) fn from_word(word: &str) -> Option<Self> {
                match word { $( $word => Some(Self::$name), )+ _ => None }
            }
        }
    };
}

signs! {
    /// The text tries to override the agent's instructions.
    Override = "override", "the text tries to override instructions";
    /// The text asks to hide what is done.
    Conceal = "conceal", "the text asks to hide what is done";
    /// The text contained invisible characters.
    HiddenCharacters = "hidden_characters", "invisible or direction-changing characters were hidden in the text";
    /// A word mixes letters of several scripts.
    MixedScripts = "mixed_scripts", "a word mixes letters of different scripts";
    /// Words were disguised.
    Disguised = "disguised", "words were disguised";
    /// An encoded part asks for something.
    Encoded = "encoded", "an encoded part asks for something";
    /// The text contains a payment card number.
    CardNumber = "card_number", "contains a payment card number";
    /// The text contains a bank account number.
    BankAccount = "bank_account", "contains a bank account number";
    /// The text contains a national identification number.
    NationalId = "national_id", "contains a national identification number";
    /// The text contains a phone number.
    PhoneNumber = "phone_number", "contains a phone number";
    /// The text contains a key or token.
    AccessKey = "access_key", "contains an access key";
    /// The text contains a password.
    PasswordValue = "password_value", "contains a password";
    /// The text contains contact details of several people.
    ContactList = "contact_list", "contains contact details of several people";
    /// The caller declares the data confidential.
    Declared = "declared", "the caller calls the data confidential";
    /// The instructions to follow are not in the request.
    UnseenInstructions = "unseen_instructions", "follows instructions that are not in the request";
    /// A part could not be parsed with certainty.
    Unclear = "unclear", "a part could not be read with certainty";
    /// The tool is not in the catalogue.
    NotInCatalogue = "not_in_catalogue", "the tool is not in the catalogue";
    /// The tool's definition differs from the accepted one.
    ToolChanged = "tool_changed", "the tool's definition changed since it was accepted";
    /// The tool's description addresses the agent.
    PoisonedTool = "poisoned_tool", "the tool's description carries instructions to the agent";
    /// The tool is declared destructive.
    Destructive = "destructive", "the tool is declared destructive";
    /// An operator determined what the tool does.
    OperatorSet = "operator_set", "an operator set what the tool is";
    /// The tool's hints contradict its name.
    Contradiction = "contradiction", "the tool's hints contradict what it is";
    /// The request names production.
    Production = "production", "production environment";
    /// The request covers all, every or everything.
    Bulk = "bulk", "bulk scope";
    /// The request covers more than 1,000 records.
    ManyRecords = "many_records", "more than 1,000 records";
    /// The action is forced or recursive.
    Force = "force", "forced or recursive";
    /// An outside party is reached.
    Outside = "outside", "reaches a party outside";
    /// A large audience is reached.
    ManyRecipients = "many_recipients", "very many recipients";
    /// Personal, financial or internal content is involved.
    Sensitive = "sensitive", "sensitive content";
    /// A secret is handled.
    Secret = "secret", "a secret is handled";
    /// Only the public part of a key is handled.
    PublicPart = "public_part", "only the public part of a key";
    /// Root or administrator rights are used.
    Administrator = "administrator", "root or administrator rights";
    /// A security or audit control is affected.
    Control = "control", "a security control or audit is concerned";
    /// Downloaded or arbitrary code is run.
    Downloaded = "downloaded", "runs downloaded or arbitrary code";
    /// Anyone with the link gets access.
    OpenLink = "open_link", "open to anyone who has the link";
    /// A backup is affected.
    Backup = "backup", "a backup is concerned";
    /// A whole disk, database, branch or account is affected.
    Whole = "whole", "a whole disk, database, branch or account is concerned";
    /// A new or unverified party is paid.
    NewParty = "new_party", "a new or unverified party";
    /// All the money of an account is affected.
    AllMoney = "all_money", "everything in an account";
    /// The destination of payments is changed.
    MoneyRoute = "money_route", "changes where money goes";
    /// Many people are affected at once.
    ManyPeople = "many_people", "many people at once";
    /// Somebody loses access.
    TakesAccess = "takes_access", "takes access away";
    /// Membership of a channel, team or workspace is changed.
    Membership = "membership", "membership is changed";
    /// An everyday purchase.
    Everyday = "everyday", "a small everyday purchase";
    /// A free reservation.
    FreeReservation = "free_reservation", "a reservation that commits";
    /// Logs are read.
    Logs = "logs", "logs are read";
    /// The effect stays within the team.
    Team = "team", "stays inside the team";
    /// A trial run without effect.
    DryRun = "dry_run", "a trial without effect";
    /// A draft, a cart or a temporary item.
    Draft = "draft", "a draft or temporary item";
    /// A local effect such as formatting, linting or packing.
    Harmless = "harmless", "a local effect";
    /// A bounded or narrowed set.
    Bounded = "bounded", "a bounded set";
    /// An order contains a word of the danger floor.
    Danger = "danger", "a word of destruction, money, rights, secrets or concealment";
    /// Something is to be removed for good, without a verb that says so.
    Destroys = "destroys", "something is to be gone for good";
    /// An everyday phrase that only sounds like another sign.
    Ordinary = "ordinary", "an everyday word";
    /// The effect reaches the whole machine, or a service elsewhere.
    Leaves = "leaves", "reaches the whole machine or a service elsewhere";
    /// Routine maintenance of one's own host.
    Upkeep = "upkeep", "routine upkeep";
}

/// A set of signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Signs(u64);

impl Signs {
    pub(crate) const fn has(self, sign: Sign) -> bool {
        self.0 & (1 << sign as u8) != 0
    }

    pub(crate) fn add(&mut self, sign: Sign) {
        self.0 |= 1 << sign as u8;
    }

    pub(crate) const fn without(self, sign: Sign) -> Self {
        Self(self.0 & !(1 << sign as u8))
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Sign> {
        Sign::ALL.iter().copied().filter(move |&sign| self.has(sign))
    }
}
