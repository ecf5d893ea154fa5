//! The checksum of each partition's bytes as they lie in the file.

/// Spark's algorithms for shuffle checksum files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChecksumAlgorithm {
    /// No checksums.
    #[default]
    None,
    /// Adler-32, Spark's default.
    Adler32,
    /// CRC-32 as in zlib.
    Crc32,
    /// CRC-32C.
    Crc32c,
}

/// A running checksum.
#[derive(Debug, Clone)]
pub(crate) enum Checksum {
    None,
    Adler32(adler2::Adler32),
    Crc32(crc32fast::Hasher),
    Crc32c(u32),
}

impl Checksum {
    pub(crate) fn new(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            ChecksumAlgorithm::None => Self::None,
            ChecksumAlgorithm::Adler32 => Self::Adler32(adler2::Adler32::new()),
            ChecksumAlgorithm::Crc32 => Self::Crc32(crc32fast::Hasher::new()),
            ChecksumAlgorithm::Crc32c => Self::Crc32c(0),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Adler32(sum) => sum.write_slice(bytes),
            Self::Crc32(sum) => sum.update(bytes),
            Self::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, bytes),
        }
    }

    /// The value so far, and a fresh start.
    pub(crate) fn take(&mut self) -> u32 {
        match self {
            Self::None => 0,
            Self::Adler32(sum) => std::mem::take(sum).checksum(),
            Self::Crc32(sum) => {
                let value = sum.clone().finalize();
                sum.reset();
                value
            }
            Self::Crc32c(sum) => std::mem::take(sum),
        }
    }
}
