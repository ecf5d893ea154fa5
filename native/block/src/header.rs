//! The 40 bytes in front of every block.
//!
//! ```text
//!      0       1       2       3       4       5       6       7
//!  0  'C'     'B'    version  kind    codec   flags   reserved (0)
//!  8  schema fingerprint             checksum (CRC32C)
//! 16  row count                      reserved (0)
//! 24  raw length
//! 32  stored length
//! ```
//!
//! All numbers are little-endian. The checksum covers the rest of the header and the stored bytes.

use crate::BlockError;
use crate::codec;

const MAGIC: [u8; 2] = *b"CB";
const VERSION: u8 = 1;
const FLAG_LAST: u8 = 1;
/// Where the checksum lies; it is the only part of a block that it doesn't cover.
const CHECKSUM_AT: usize = 12;

/// What the decompressed bytes of a block are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadKind {
    /// An Arrow IPC stream: the schema message and one record batch message.
    Ipc,
    /// The record batch message of such a stream alone. For small blocks.
    IpcBatch,
    /// The body of the record batch message alone, behind the few numbers of the message that don't
    /// follow from the schema and the row count. For small blocks without a codec.
    IpcBody,
}

impl PayloadKind {
    fn of(id: u8) -> Option<Self> {
        let mut kinds = [Self::Ipc, Self::IpcBatch, Self::IpcBody].into_iter();
        kinds.find(|kind| kind.id() == id)
    }

    /// The number in the header; 2 is reserved for `compact`.
    fn id(self) -> u8 {
        match self {
            Self::Ipc => 1,
            Self::IpcBatch => 3,
            Self::IpcBody => 4,
        }
    }
}

/// A block's header, with every field checked for what can be checked without the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    pub(crate) codec: u8,
    pub(crate) last: bool,
    pub(crate) kind: PayloadKind,
    pub(crate) fingerprint: u32,
    pub(crate) checksum: u32,
    pub(crate) rows: u32,
    pub(crate) raw_length: u64,
    pub(crate) stored_length: u64,
}

impl BlockHeader {
    /// The header's size in bytes.
    pub const LENGTH: usize = 40;

    /// The largest raw or stored length that a block may have, in bytes.
    pub const MAX_LENGTH: u64 = 1 << 40;

    /// Reads the header at the start of `bytes`, which may hold more than the header.
    ///
    /// The checksum is not verified here, see [`BlockHeader::verify_checksum`]: until then nothing
    /// about the lengths is certain except their limits.
    ///
    /// # Errors
    ///
    /// [`BlockError::Corrupt`] if `bytes` is shorter than a header, or a field has a value that no
    /// writer of this format version produces.
    pub fn parse(bytes: &[u8]) -> Result<Self, BlockError> {
        let mut cursor = Cursor(header_bytes(bytes)?);
        let magic = cursor.take::<2>()?;
        if magic != MAGIC {
            return Err(BlockError::corrupt(format!(
                "expected magic {MAGIC:02x?}, found {magic:02x?}"
            )));
        }
        let [version, kind, codec, flags] = cursor.take::<4>()?;
        expect("format version", u64::from(VERSION), u64::from(version))?;
        let kind = PayloadKind::of(kind).ok_or_else(|| {
            BlockError::corrupt(format!("payload kind: expected 1, 3 or 4, found {kind}"))
        })?;
        if codec::name(codec).is_none() {
            return Err(BlockError::corrupt(format!(
                "expected codec 0 to 3, found {codec}"
            )));
        }
        let undefined = flags & !FLAG_LAST;
        expect("undefined flags", 0, u64::from(undefined))?;
        let reserved = u16::from_le_bytes(cursor.take()?);
        expect("reserved bytes 6 and 7", 0, u64::from(reserved))?;
        let fingerprint = cursor.u32()?;
        let checksum = cursor.u32()?;
        let rows = cursor.u32()?;
        expect("reserved bytes 20 to 23", 0, u64::from(cursor.u32()?))?;
        let header = Self {
            codec,
            last: flags & FLAG_LAST != 0,
            kind,
            fingerprint,
            checksum,
            rows,
            raw_length: cursor.u64()?,
            stored_length: cursor.u64()?,
        };
        header.check_lengths()?;
        Ok(header)
    }

    /// What the stored bytes hold once they are decompressed.
    pub fn kind(&self) -> PayloadKind {
        self.kind
    }

    /// The codec of the stored bytes: 0 none, 1 lz4, 2 zstd, 3 snappy.
    pub fn codec_id(&self) -> u8 {
        self.codec
    }

    /// Whether this is the last block that its map task wrote for the partition.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// The fingerprint of the writer's schema, see [`crate::schema_fingerprint`].
    pub fn fingerprint(&self) -> u32 {
        self.fingerprint
    }

    /// The CRC32C of the rest of the block.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The length of the decompressed payload in bytes; 0 only for an end marker.
    pub fn raw_length(&self) -> u64 {
        self.raw_length
    }

    /// The length of what follows the header in bytes.
    pub fn stored_length(&self) -> u64 {
        self.stored_length
    }

    /// The bytes after the header of a block that starts at the start of `bytes`.
    ///
    /// # Errors
    ///
    /// [`BlockError::Corrupt`] if `bytes` ends before the block does.
    pub fn stored<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], BlockError> {
        let rest = bytes.get(Self::LENGTH..).unwrap_or_default();
        usize::try_from(self.stored_length)
            .ok()
            .and_then(|length| rest.get(..length))
            .ok_or_else(|| {
                BlockError::corrupt(format!(
                    "truncated: expected {} stored bytes, found {}",
                    self.stored_length,
                    rest.len()
                ))
            })
    }

    /// Verifies the checksum of a block that starts at the start of `bytes`, without decoding it.
    ///
    /// # Errors
    ///
    /// [`BlockError::Corrupt`] if `bytes` ends before the block does or the checksum differs.
    pub fn verify_checksum(&self, bytes: &[u8]) -> Result<(), BlockError> {
        let actual = compute_checksum(header_bytes(bytes)?, self.stored(bytes)?);
        if actual != self.checksum {
            return Err(BlockError::corrupt(format!(
                "expected checksum {:08x}, computed {actual:08x} over {} stored bytes",
                self.checksum, self.stored_length
            )));
        }
        Ok(())
    }

    /// The header's bytes with the checksum computed over them and `stored`.
    pub(crate) fn to_bytes(self, stored: &[u8]) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let last = if self.last { FLAG_LAST } else { 0 };
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 2, &[VERSION, self.kind.id(), self.codec, last]);
        put(&mut bytes, 8, &self.fingerprint.to_le_bytes());
        put(&mut bytes, 16, &self.rows.to_le_bytes());
        put(&mut bytes, 24, &self.raw_length.to_le_bytes());
        put(&mut bytes, 32, &self.stored_length.to_le_bytes());
        let checksum = compute_checksum(&bytes, stored);
        put(&mut bytes, CHECKSUM_AT, &checksum.to_le_bytes());
        bytes
    }

    fn check_lengths(&self) -> Result<(), BlockError> {
        let (raw, stored) = (self.raw_length, self.stored_length);
        if raw > Self::MAX_LENGTH {
            return Err(BlockError::corrupt(format!(
                "expected a raw length of at most {}, found {raw}",
                Self::MAX_LENGTH
            )));
        }
        if self.codec == codec::NONE {
            expect("stored length of an uncompressed block", raw, stored)?;
        } else if stored >= raw {
            return Err(BlockError::corrupt(format!(
                "expected fewer than the {raw} raw bytes in a compressed block, found {stored}"
            )));
        }
        // Only the end marker has no payload: a batch of no columns has a message.
        if raw == 0 {
            expect("rows of an end marker", 0, u64::from(self.rows))?;
            expect("last flag of an end marker", 1, u64::from(self.last))?;
            let kind = u64::from(self.kind.id());
            expect(
                "kind of an end marker",
                u64::from(PayloadKind::Ipc.id()),
                kind,
            )?;
        }
        Ok(())
    }
}

fn header_bytes(bytes: &[u8]) -> Result<&[u8; BlockHeader::LENGTH], BlockError> {
    bytes.first_chunk().ok_or_else(|| {
        BlockError::corrupt(format!(
            "truncated: expected a header of {} bytes, found {}",
            BlockHeader::LENGTH,
            bytes.len()
        ))
    })
}

fn compute_checksum(header: &[u8; BlockHeader::LENGTH], stored: &[u8]) -> u32 {
    let (before, rest) = header.split_at(CHECKSUM_AT);
    let after = rest.get(4..).unwrap_or_default();
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(before), after), stored)
}

fn expect(what: &str, expected: u64, found: u64) -> Result<(), BlockError> {
    if expected == found {
        return Ok(());
    }
    Err(BlockError::corrupt(format!(
        "{what}: expected {expected}, found {found}"
    )))
}

fn put(bytes: &mut [u8; BlockHeader::LENGTH], at: usize, value: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(value) {
        *to = *from;
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BlockError> {
        let (value, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| BlockError::corrupt("truncated header"))?;
        self.0 = rest;
        Ok(*value)
    }

    fn u32(&mut self) -> Result<u32, BlockError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, BlockError> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}
