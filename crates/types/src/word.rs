//! Macros for the contract's text values: enums of fixed words, and newtypes over text.

/// Defines an enum whose variants are written as fixed words. Adds `ALL`, `as_str`, `Display`, `FromStr` with an error
/// that lists the words, and serde.
#[doc(hidden)]
#[macro_export]
macro_rules! closed_words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident($what:literal) {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[allow(unreachable_pub)] // some of the enums are ours alone
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant ),+
        }

        #[allow(unreachable_pub)]
        impl $name {
            /// All values, in the order of their definition.
            pub const ALL: &'static [Self] = &[ $( Self::$variant ),+ ];

            /// The word used in JSON and in texts.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word ),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::InvalidValue;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $( $word => Ok(Self::$variant), )+
                    _ => Err($crate::InvalidValue::new(
                        $what,
                        word,
                        concat!("one of", $( " ", $word ),+),
                    )),
                }
            }
        }

        $crate::words_schema! { $name $( $word )+ }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Adds the OpenAPI schema of an enum of fixed words; expands to nothing without the feature `schema`.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! words_schema {
    ($name:ident $( $word:literal )+) => {
        impl $crate::utoipa::PartialSchema for $name {
            fn schema() -> $crate::utoipa::openapi::RefOr<$crate::utoipa::openapi::Schema> {
                $crate::schema::words([ $( $word ),+ ])
            }
        }

        impl $crate::utoipa::ToSchema for $name {}
    };
}

/// Adds the OpenAPI schema of an enum of fixed words; expands to nothing without the feature `schema`.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! words_schema {
    ($name:ident $( $word:literal )+) => {};
}

/// Implements `Display`, `Serialize` and `Deserialize` for a newtype over text that has `as_str` and `FromStr`.
/// Deserialization goes through `FromStr`, so every value is valid.
macro_rules! written_as_text {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use written_as_text;
