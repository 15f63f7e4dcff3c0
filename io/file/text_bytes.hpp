// SPDX-License-Identifier: Apache-2.0
// text_bytes.hpp: the bytes of a text file at any offset, also where the file is compressed by
// gzip or zip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace qrtool {

/// Only one thread at a time may use it.
class TextBytes {
 public:
  virtual ~TextBytes() = default;
  /// Reads at most `size` bytes of the text from `offset` on. Returns 0 at its end. Ascending
  /// offsets are fast. Errors: InputError, also if compressed data is damaged or cut off.
  virtual std::size_t read_at(std::uint64_t offset, char* to, std::size_t size) = 0;
};

/// Opens the text in a file that can be read at any offset, and takes over its descriptor. A gzip
/// file, or the only text of a zip archive, is decompressed while it is read; nothing is kept on
/// disk, and going back to an earlier offset decompresses it from the start again. `shown`: its
/// name in messages. Errors: InputError.
std::unique_ptr<TextBytes> open_text_bytes(int descriptor, const std::string& shown);

/// Returns the first 4096 bytes of the text, or all of it if it is shorter. Errors: as read_at().
std::string head_of_text(int descriptor, const std::string& shown);

/// Whether the file begins like one of gzip, or is a zip archive with one text. Errors: InputError.
bool is_compressed_text(int descriptor, const std::string& shown);

}  // namespace qrtool
