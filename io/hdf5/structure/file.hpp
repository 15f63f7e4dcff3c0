// SPDX-License-Identifier: Apache-2.0
// file.hpp: makes the HDF5 C API safe, with handles, one lock and error texts, and cuts ranges of
// matrices into boxes.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/batch.hpp"

namespace qrtool::hdf5 {

/// The bytes that the library uses for each open file, most of them for its cache of metadata.
constexpr std::size_t open_file_bytes = std::size_t{544} << 10;

/// A lock that every operation on HDF5 holds, since not every build of the library is thread-safe.
/// The first Session sets the library up.
class Session {
 public:
  Session() : Session(nullptr) {}
  /// A session that reads a file. Its name, escaped, must exist as long as the session.
  explicit Session(const std::string& shown) : Session(shown.c_str()) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  friend class Handle;
  /// Says which code this thread is in, for handlers of signals.
  class Mark {
   public:
    explicit Mark(const char* file);
    ~Mark();

   private:
    const char* outer_file_;  // of the session around this one
  };
  explicit Session(const char* file);

  std::unique_lock<std::recursive_mutex> lock_;
  Mark mark_;
};

/// Remembers the escaped name of a file that is opened. A crash while an object is closed is blamed
/// on it.
void remember_file(const std::string& shown) noexcept;

/// Makes all handles of this process stay open from now on. It is called after a failed write, when
/// the library crashes as it closes objects (HDF5 1.10 even at exit).
void stop_closing() noexcept;
bool is_closing_stopped() noexcept;

/// Owns an identifier of HDF5 and closes it.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close close_function) : id_(id), close_(close_function) {}
  Handle(Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() { close(); }

  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }

  /// Returns false if HDF5 reports an error, and after stop_closing().
  bool close() noexcept;
  /// Gives the identifier up without closing it.
  void abandon() noexcept { id_ = H5I_INVALID_HID; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// Returns the texts of HDF5's last error, joined by "; ", with the outermost call first, and
/// clears the error. Errors: LimitError if an allocation has failed since the last error.
std::string take_error();
/// Returns the last part of such a text, which names the cause.
std::string innermost_error(const std::string& error);

/// Calls `work` inside a function that HDF5 calls. Exceptions must not pass through HDF5, a library
/// in C: one is kept in `failure`, for the caller of HDF5 to throw, and HDF5 is told to stop.
template <class Work>
herr_t keep_exception(std::exception_ptr& failure, Work&& work) noexcept {
  try {
    work();
    return 0;
  } catch (...) {
    failure = std::current_exception();
    return -1;
  }
}

/// Returns HDF5's type for T in memory.
template <class T>
hid_t native_type() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
}

/// A rectangular part of the leading dimensions, whose matrices are contiguous in the flat order.
struct Box {
  std::vector<hsize_t> start, count;
  index_t matrices = 0;
};

/// Cuts matrices first .. first + count - 1 of the flattened leading dimensions into as few boxes
/// as possible (at most 2 * leading.size() - 1), since reading each box is one call of HDF5.
std::vector<Box> cut_into_boxes(std::span<const index_t> leading, index_t first, index_t count);

}  // namespace qrtool::hdf5
