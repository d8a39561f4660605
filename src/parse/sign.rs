//! Signs: what a request shows that bears on its risk, each with the words in
//! which `riskFactors` names it.

/// Defines the signs, their words in data files, and their words for people.
macro_rules! signs {
    ($( $(#[$meta:meta])* $name:ident = $word:literal, $text:literal; )+) => {
        /// One thing that bears on risk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Sign { $( $(#[$meta])* $name ),+ }

        impl Sign {
            /// Every sign, in the order in which factors are listed.
            pub(crate) const ALL: &'static [Self] = &[ $( Self::$name ),+ ];

            /// Their words in data files.
            pub(crate) const WORDS: &'static [&'static str] = &[$( $word ),+];

            /// What it is called in `riskFactors`.
            pub(crate) const fn text(self) -> &'static str {
                match self { $( Self::$name => $text ),+ }
            }

            /// The sign of a data file's word.
            pub(crate) fn from_word(word: &str) -> Option<Self> {
                match word { $( $word => Some(Self::$name), )+ _ => None }
            }
        }
    };
}

signs! {
    /// The text tries to set aside what the agent was told.
    Override = "override", "the text tries to override instructions";
    /// The text asks to act unseen.
    Conceal = "conceal", "the text asks to hide what is done";
    /// Invisible characters stood in the text.
    HiddenCharacters = "hidden_characters", "invisible or direction-changing characters were hidden in the text";
    /// Letters of several scripts stand in one word.
    MixedScripts = "mixed_scripts", "a word mixes letters of different scripts";
    /// Words were written so as not to be found.
    Disguised = "disguised", "words were disguised";
    /// Something encoded asks for something.
    Encoded = "encoded", "an encoded part asks for something";
    /// A payment card's number stands in the text.
    CardNumber = "card_number", "contains a payment card number";
    /// A bank account's number stands in the text.
    BankAccount = "bank_account", "contains a bank account number";
    /// A person's number with the state stands in the text.
    NationalId = "national_id", "contains a national identification number";
    /// A key or token stands in the text.
    AccessKey = "access_key", "contains an access key";
    /// A password stands in the text.
    PasswordValue = "password_value", "contains a password";
    /// Ways to reach several people stand in the text.
    ContactList = "contact_list", "contains contact details of several people";
    /// The caller says that the data is confidential.
    Declared = "declared", "the caller calls the data confidential";
    /// What is to be done stands elsewhere, unseen.
    UnseenInstructions = "unseen_instructions", "follows instructions that are not in the request";
    /// Something in it could not be read with certainty.
    Unclear = "unclear", "a part could not be read with certainty";
    /// A tool that nobody handed over.
    NotInCatalogue = "not_in_catalogue", "the tool is not in the catalogue";
    /// A tool whose definition is another than the one that was accepted.
    ToolChanged = "tool_changed", "the tool's definition changed since it was accepted";
    /// A tool whose description speaks to the agent.
    PoisonedTool = "poisoned_tool", "the tool's description carries instructions to the agent";
    /// A tool whose maker says that it destroys.
    Destructive = "destructive", "the tool is declared destructive";
    /// What a tool is was said by an operator.
    OperatorSet = "operator_set", "an operator set what the tool is";
    /// A tool whose hints and name disagree.
    Contradiction = "contradiction", "the tool's hints contradict what it is";
    /// Production is named.
    Production = "production", "production environment";
    /// All, every, everything.
    Bulk = "bulk", "bulk scope";
    /// More than a thousand records.
    ManyRecords = "many_records", "more than 1,000 records";
    /// Force, recursion.
    Force = "force", "forced or recursive";
    /// A party outside.
    Outside = "outside", "reaches a party outside";
    /// A whole audience.
    ManyRecipients = "many_recipients", "very many recipients";
    /// Personal, financial or internal content.
    Sensitive = "sensitive", "sensitive content";
    /// A secret is handled.
    Secret = "secret", "a secret is handled";
    /// Only the public part of a key.
    PublicPart = "public_part", "only the public part of a key";
    /// Root or administrator rights.
    Administrator = "administrator", "root or administrator rights";
    /// A safety or audit control.
    Control = "control", "a security control or audit is concerned";
    /// Downloaded or unseen code.
    Downloaded = "downloaded", "runs downloaded or arbitrary code";
    /// A link that anyone can use.
    OpenLink = "open_link", "open to anyone who has the link";
    /// A backup.
    Backup = "backup", "a backup is concerned";
    /// A whole disk, database or account goes.
    Whole = "whole", "a whole disk, database, branch or account is concerned";
    /// A new, unverified party is paid.
    NewParty = "new_party", "a new or unverified party";
    /// All the money there is.
    AllMoney = "all_money", "everything in an account";
    /// Where money goes is changed.
    MoneyRoute = "money_route", "changes where money goes";
    /// Several people at once.
    ManyPeople = "many_people", "many people at once";
    /// Somebody loses access.
    TakesAccess = "takes_access", "takes access away";
    /// Membership of a channel, team or workspace.
    Membership = "membership", "membership is changed";
    /// An everyday purchase.
    Everyday = "everyday", "a small everyday purchase";
    /// A free reservation.
    FreeReservation = "free_reservation", "a reservation that commits";
    /// Logs.
    Logs = "logs", "logs are read";
    /// Within one's own team.
    Team = "team", "stays inside the team";
    /// A trial without effect.
    DryRun = "dry_run", "a trial without effect";
    /// A draft, a cart, a temporary item.
    Draft = "draft", "a draft or temporary item";
    /// Formatting, linting, packing.
    Harmless = "harmless", "a local effect";
    /// A bounded or narrowed set.
    Bounded = "bounded", "a bounded set";
    /// A word of danger is ordered.
    Danger = "danger", "a word of destruction, money, rights, secrets or concealment";
    /// Something is to be gone, in other words than a verb's.
    Destroys = "destroys", "something is to be gone for good";
    /// Words that sound like a sign and are none.
    Ordinary = "ordinary", "an everyday word";
    /// Upkeep of one's own host.
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
