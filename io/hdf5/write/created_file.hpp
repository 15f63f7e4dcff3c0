// SPDX-License-Identifier: Apache-2.0
// created_file.hpp: an HDF5 file that is being written.
#pragma once

#include <string>

#include "io/file/atomic_file.hpp"
#include "io/hdf5/structure/file.hpp"
#include "io/hdf5/write/planned_datasets.hpp"
#include "io/write/writer.hpp"

namespace qrtool::hdf5 {

/// The file of one writer, or of several that write one dataset after another. It creates objects
/// without times, so that equal results give equal files. Every failure throws OutputError, or
/// LimitError if memory is short, and HDF5 closes nothing from then on. The caller holds a Session
/// unless a function says otherwise.
class CreatedFile {
 public:
  CreatedFile(const std::string& path, bool force) : atomic_(path, force) {}

  AtomicFile& atomic() { return atomic_; }
  /// The file as HDF5 has opened it; empty before create().
  Handle& handle() { return handle_; }

  void create();
  void create_attribute(hid_t object, const std::string& name, const AttributeValue& value);
  /// Creates a group, and the groups above it.
  Handle create_group(const std::string& path);
  /// Creates a dataset; if `parent` is the file, also the groups above it. At most `threads`
  /// threads will write its chunks.
  void create_dataset(hid_t parent, Output& output, const std::string& path, hid_t type,
                      int threads);

  /// Appends numbers to a dataset. Needs no Session, nor do the next two.
  void append(Output& to, const void* values, index_t count);
  /// Goes back to the element `position`, which was written.
  void go_back(Output& to, index_t position);
  /// Writes the last chunk, which may not be full, and closes the dataset.
  void finish(Output& output);

  /// Throws the error that HDF5 has reported.
  [[noreturn]] void fail();
  [[noreturn]] void fail(std::string reason);
  template <class Result>  // hid_t or herr_t
  Result check(Result result) {
    if (result < 0) fail();
    return result;
  }

 private:
  void create_groups(const std::string& path);

  AtomicFile atomic_;
  Handle handle_;
};

}  // namespace qrtool::hdf5
