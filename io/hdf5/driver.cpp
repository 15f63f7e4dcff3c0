// SPDX-License-Identifier: Apache-2.0
// driver.cpp: an HDF5 driver that can note the place of a chunk instead of moving its bytes.
#include "io/hdf5/driver.hpp"

#include <memory>
#include <new>
#include <vector>

#include "io/hdf5/file.hpp"
#include "io/hdf5/global_heap.hpp"
#include "io/hdf5/local_heap.hpp"
#include "io/hdf5/superblock.hpp"

namespace qrtool::hdf5 {
namespace {

/// While an object of this class exists, raw data of its thread is not read or written: the object
/// notes the place.
class Interception {
 public:
  Interception() { current_ = this; }
  ~Interception() { current_ = nullptr; }
  Interception(const Interception&) = delete;
  Interception& operator=(const Interception&) = delete;

  /// Notes the place and returns true where the driver must not move these bytes.
  static bool takes(H5FD_mem_t type, haddr_t address, std::size_t bytes) {
    if (current_ == nullptr || type != H5FD_MEM_DRAW) return false;
    current_->extent_ = {address, bytes};
    ++current_->accesses_;
    return true;
  }

  /// The place that was noted; nothing unless there was exactly one.
  std::optional<Extent> extent() const {
    return accesses_ == 1 ? std::optional(extent_) : std::nullopt;
  }

 private:
  Extent extent_;
  int accesses_ = 0;
  static thread_local Interception* current_;
};
thread_local Interception* Interception::current_ = nullptr;

/// An open file. HDF5 only knows `base`, which must be the first member.
struct File {
  H5FD_t base{};
  H5FD_t* inner = nullptr;  // the file that sec2 opened
  bool is_read_only = false;
};

H5FD_t* inner(const H5FD_t* file) { return reinterpret_cast<const File*>(file)->inner; }

/// The functions of sec2. They are called directly, because the public functions (H5FDread, ...)
/// would clear HDF5's list of errors.
const H5FD_class_t& sec2(const H5FD_t* file) { return *inner(file)->cls; }

H5FD_t* open_inner(const char* name, unsigned flags, hid_t access, haddr_t max_address) {
  const Handle plain(H5Pcopy(access), H5Pclose);
  std::unique_ptr<File> file(new (std::nothrow) File);
  if (!file || !plain || H5Pset_fapl_sec2(plain) < 0) return nullptr;
  file->inner = H5FDopen(name, flags, plain, max_address);
  file->is_read_only = (flags & H5F_ACC_RDWR) == 0;
  return file->inner == nullptr ? nullptr : &file.release()->base;
}

herr_t close_inner(H5FD_t* file) {
  const std::unique_ptr<File> owned(reinterpret_cast<File*>(file));
  const hid_t errors =
      H5Eget_current_stack();  // closing would clear the errors of a failed opening
  const herr_t result = H5FDclose(owned->inner);
  H5Eset_current_stack(errors);
  return result;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  // These are the flags of sec2, which decide how HDF5 allocates space in a file, except
  // H5FD_FEAT_ACCUMULATE_METADATA: the buffer that it asks for is overrun where a damaged file
  // states a wrong size (H5F__accum_read). H5Fget_eoa asks for H5FD_FEAT_SUPPORTS_SWMR_IO.
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
           H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
           H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

/// Whether HDF5 can work with what it has read. Where it cannot, this is HDF5's error.
bool is_sound(const H5FD_t* file, hid_t transfer, std::span<const std::byte> bytes) {
  const bool is_start = is_superblock(bytes), is_global = is_global_heap(bytes);
  if (!is_start && !is_global && !is_local_heap(bytes)) return true;
  const auto read_bytes = [&](std::uint64_t address, std::span<std::byte> to) {
    const haddr_t end = sec2(file).get_eof(inner(file), H5FD_MEM_DEFAULT);
    const haddr_t start = file->base_addr + address;
    if (start < address || start > end || to.size() > end - start) return false;
    return sec2(file).read(inner(file), H5FD_MEM_LHEAP, transfer, start, to.size(), to.data()) >= 0;
  };
  try {
    const std::string problem = is_start    ? problem_of_superblock(bytes)
                                : is_global ? problem_of_global_heap(bytes, read_bytes)
                                            : problem_of_local_heap(bytes, read_bytes);
    if (problem.empty()) return true;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_FILE, H5E_BADVALUE, "%s",
             problem.c_str());
  } catch (const std::bad_alloc&) {  // which must not pass through HDF5, a library in C
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
             "memory allocation failed");
  }
  return false;
}

herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address, std::size_t bytes,
            void* to) {
  if (Interception::takes(type, address, bytes)) return 0;
  if (const herr_t result = sec2(file).read(inner(file), type, transfer, address, bytes, to);
      result < 0) {
    return result;
  }
  // What is being written may be in HDF5's memory yet.
  if (!reinterpret_cast<const File*>(file)->is_read_only) return 0;
  const std::span<const std::byte> found(static_cast<const std::byte*>(to), bytes);
  // HDF5 reads global heaps like raw data.
  const bool is_global = type == H5FD_MEM_DRAW && is_global_heap(found);
  if (type != H5FD_MEM_SUPER && type != H5FD_MEM_LHEAP && !is_global) return 0;
  return is_sound(file, transfer, found) ? 0 : -1;
}

herr_t write(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address, std::size_t bytes,
             const void* from) {
  if (Interception::takes(type, address, bytes)) return 0;
  return sec2(file).write(inner(file), type, transfer, address, bytes, from);
}

hid_t register_driver() {
  constexpr H5FD_mem_t free_lists[] = H5FD_FLMAP_DICHOTOMY;
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION  // HDF5 1.14
  driver.version = H5FD_CLASS_VERSION;
  driver.value = H5_VFD_RESERVED;
#endif
  driver.name = "qrtool_locating";
  driver.maxaddr = INT64_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_inner;
  driver.close = close_inner;
  driver.cmp = [](const H5FD_t* a, const H5FD_t* b) { return sec2(a).cmp(inner(a), inner(b)); };
  driver.query = query;
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t type) {
    return sec2(file).get_eoa(inner(file), type);
  };
  driver.set_eoa = [](H5FD_t* file, H5FD_mem_t type, haddr_t address) {
    return sec2(file).set_eoa(inner(file), type, address);
  };
  driver.get_eof = [](const H5FD_t* file, H5FD_mem_t type) {
    return sec2(file).get_eof(inner(file), type);
  };
  driver.get_handle = [](H5FD_t* file, hid_t access, void** handle) {
    return sec2(file).get_handle(inner(file), access, handle);
  };
  driver.read = read;
  driver.write = write;
  driver.truncate = [](H5FD_t* file, hid_t transfer, hbool_t closing) {
    return sec2(file).truncate(inner(file), transfer, closing);
  };
  driver.lock = [](H5FD_t* file, hbool_t for_writing) {
    return sec2(file).lock(inner(file), for_writing);
  };
  driver.unlock = [](H5FD_t* file) { return sec2(file).unlock(inner(file)); };
  std::copy(std::begin(free_lists), std::end(free_lists), driver.fl_map);
  return H5FDregister(&driver);
}

/// Whether HDF5 passes the buffer of a chunk to the driver, which leaves it alone, and does nothing
/// else with it. That is known of 1.10.8 only; with other releases a buffer must hold the chunk.
bool leaves_buffers_alone() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return major == 1 && minor == 10 && release == 8;
}

/// The bytes that are stored for a chunk; 0 where HDF5 reports an error.
std::size_t stored_chunk_bytes(hid_t dataset, std::span<const hsize_t> offset) {
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset, offset.data(), &bytes) < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

}  // namespace

herr_t set_locating_driver(hid_t access) {
  const Session session;
  static const hid_t driver = register_driver();
  if (driver < 0) throw std::bad_alloc();
  return H5Pset_driver(access, driver, nullptr);
}

int descriptor_of(hid_t file) {
  const Session session;
  void* handle = nullptr;
  if (H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0) return -1;
  return *static_cast<const int*>(handle);
}

std::optional<StoredChunk> locate_chunk(hid_t dataset, std::span<const hsize_t> offset) {
  const Session session;
  std::vector<char> buffer(leaves_buffers_alone() ? 1 : stored_chunk_bytes(dataset, offset));
  if (buffer.empty()) return {};
  const Interception interception;
  StoredChunk chunk;
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &chunk.filters_left_out, buffer.data()) <
      0) {
    return {};
  }
  // HDF5 does not read a chunk that is stated to have no bytes.
  chunk.extent = interception.extent().value_or(Extent{});
  return chunk;
}

std::optional<Extent> find_chunk(hid_t dataset, std::span<const hsize_t> offset) {
  const std::optional<StoredChunk> chunk = locate_chunk(dataset, offset);
  return chunk && chunk->filters_left_out == 0 ? std::optional(chunk->extent) : std::nullopt;
}

std::optional<Extent> allocate_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                     std::size_t bytes) {
  const Session session;
  const std::vector<char> buffer(leaves_buffers_alone() ? 1 : bytes);
  const Interception interception;
  if (H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), bytes, buffer.data()) < 0) return {};
  return interception.extent();
}

}  // namespace qrtool::hdf5
