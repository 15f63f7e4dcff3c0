// SPDX-License-Identifier: Apache-2.0
// input_file.hpp: checks a file and finds its kind before the reader of its format opens it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace qrtool {

enum class Content { hdf5, npy, zip, gzip, text, utf16, matrix_market, octave_text, binary };

/// Whether a file of any kind has this name.
bool file_exists(const std::string& path);

/// Returns the last dot of the name and the text behind it, in lower case, or an empty text.
std::string ending_of(const std::string& path);
/// Whether the name ends in .csv, .tsv or .txt (in any case).
bool has_text_ending(const std::string& path);

/// Returns the size of a readable regular file in bytes. Other kinds of files are not opened, since
/// opening a FIFO would block. Errors: InputError, also if the file is empty.
std::uint64_t readable_size(const std::string& path);

/// Returns the kind of content, found from the first bytes. HDF5 may begin at byte 0, 512, 1024,
/// 2048, ... (after the user block of MATLAB).
Content sniff(const std::string& path);
/// Returns the kind of content of an open file; `shown` is its name, escaped.
Content sniff(int descriptor, const std::string& shown);

/// Returns at most `size` bytes from the beginning of a file. Errors: InputError.
std::string first_bytes(const std::string& path, std::size_t size);

/// Whether a text with this first line is a Matrix Market file.
bool is_matrix_market(std::string_view first_line);

/// Whether a text begins with a damaged first line of Matrix Market: at least three of its five
/// words, in their order.
bool is_damaged_matrix_market(std::string_view first_line);

/// Whether a text begins like one that Octave wrote: by its first line, or by the name and the type
/// of a variable.
bool is_octave_text(std::string_view head);

/// Says that a file changed between two looks at it. `shown` is its name, escaped. Throws
/// InputError.
[[noreturn]] void throw_changed(const std::string& shown);

/// Shows whether an open file was changed: it compares the size, and the times of the last write
/// and of the last change of its status.
class FileStamp {
 public:
  explicit FileStamp(int descriptor);

  /// Compares the stamp with the file as it is now. `shown` is the file's name, escaped. Calls
  /// throw_changed if they differ.
  void require_unchanged(int descriptor, const std::string& shown) const;

 private:
  struct stat then_ {};
};

/// The file and the dataset that a path names.
struct Location {
  std::string file, dataset;
};
/// Splits "FILE:/path", "FILE.npz:name" and "FILE:[0:10]" into file and dataset, unless a file with
/// the full name exists. A directory is no FILE.
Location split_location(const std::string& path);

}  // namespace qrtool
