// SPDX-License-Identifier: Apache-2.0
// driver.cpp: an HDF5 driver that can note the place of a chunk instead of moving its bytes.
#include "io/hdf5/structure/driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "io/hdf5/structure/file.hpp"
#include "io/hdf5/structure/fixed_arrays.hpp"
#include "io/hdf5/structure/global_heap.hpp"
#include "io/hdf5/structure/local_heap.hpp"
#include "io/hdf5/structure/search_tree.hpp"
#include "io/hdf5/structure/superblock.hpp"
#include "io/hdf5/structure/watch.hpp"

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

  /// Records the place and returns true if the driver must not transfer these bytes.
  static bool takes(H5FD_mem_t type, haddr_t address, std::size_t bytes) {
    if (current_ == nullptr || type != H5FD_MEM_DRAW) return false;
    current_->extent_ = {address, bytes};
    ++current_->accesses_;
    return true;
  }

  /// Returns the recorded place, or nothing unless there was exactly one.
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

/// Returns the functions of HDF5's driver sec2. They are called directly, because the public
/// functions (H5FDread, ...) would clear HDF5's list of errors.
const H5FD_class_t& sec2(const H5FD_t* file) { return *inner(file)->cls; }

/// Returns the descriptor through which the driver sec2 reads the file.
int inner_descriptor(const H5FD_t* file) {
  void* handle = nullptr;
  if (sec2(file).get_handle(inner(file), H5P_DEFAULT, &handle) < 0) return -1;
  return *static_cast<const int*>(handle);
}

H5FD_t* open_inner(const char* name, unsigned flags, hid_t access, haddr_t max_address) {
  const Handle plain(H5Pcopy(access), H5Pclose);
  std::unique_ptr<File> file(new (std::nothrow) File);
  if (!file || !plain || H5Pset_fapl_sec2(plain) < 0) return nullptr;
  file->inner = H5FDopen(name, flags, plain, max_address);
  file->is_read_only = (flags & H5F_ACC_RDWR) == 0;
  if (file->inner == nullptr) return nullptr;
  forget_fixed_arrays(inner_descriptor(&file->base));
  return &file.release()->base;
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
  // These are the flags of the driver sec2, which decide how HDF5 allocates space in a file, except
  // H5FD_FEAT_ACCUMULATE_METADATA: its buffer overflows if a damaged file states a wrong size
  // (H5F__accum_read). H5Fget_eoa requires H5FD_FEAT_SUPPORTS_SWMR_IO.
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
           H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
           H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

/// Structures of a file that HDF5 reads without checking them enough.
enum class Structure { other, superblock, global_heap, local_heap, fixed_array, search_tree };

/// Returns the kind of structure that these bytes are, which HDF5 has read as `type`.
Structure structure_of(H5FD_mem_t type, std::span<const std::byte> bytes) {
  // HDF5 reads global heaps like raw data, but none of them while it reads numbers.
  if (type == H5FD_MEM_DRAW)
    return !NumbersRead::is_going_on() && is_global_heap(bytes) ? Structure::global_heap
                                                                : Structure::other;
  if (is_fixed_array(bytes)) return Structure::fixed_array;
  if (is_search_tree(bytes)) return Structure::search_tree;
  if (type != H5FD_MEM_SUPER && type != H5FD_MEM_LHEAP) return Structure::other;
  if (is_superblock(bytes)) return Structure::superblock;
  if (is_global_heap(bytes)) return Structure::global_heap;
  return is_local_heap(bytes) ? Structure::local_heap : Structure::other;
}

herr_t refuse_for_memory() {
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
           "memory allocation failed");
  return -1;
}

/// Records the head of a dataset's index. If there is no memory for it, HDF5 gets an error.
herr_t note_index(const H5FD_t* file, std::span<const std::byte> head) {
  std::exception_ptr failure;
  const int result =
      keep_exception(failure, [&] { note_fixed_array(inner_descriptor(file), head); });
  return result == 0 ? 0 : refuse_for_memory();
}

/// Checks that HDF5 can work with the structure that it has read from `found_at`. If not, HDF5 gets
/// an error.
herr_t check(Structure structure, const H5FD_t* file, hid_t transfer, haddr_t found_at,
             std::span<const std::byte> bytes) {
  const haddr_t end = sec2(file).get_eof(inner(file), H5FD_MEM_DEFAULT);
  const auto read_bytes = [&](std::uint64_t address, std::span<std::byte> to) {
    const haddr_t start = file->base_addr + address;
    if (start < address || start > end || to.size() > end - start) return false;
    return sec2(file).read(inner(file), H5FD_MEM_LHEAP, transfer, start, to.size(), to.data()) >= 0;
  };
  const auto problem_of = [&]() -> std::string {
    switch (structure) {
      case Structure::other:
        return {};
      case Structure::superblock:
        return problem_of_superblock(bytes);
      case Structure::global_heap:
        return problem_of_global_heap(found_at, read_bytes);
      case Structure::local_heap:
        return problem_of_local_heap(bytes, read_bytes);
      case Structure::fixed_array:
        return problem_of_fixed_array(bytes, end, read_bytes);
      case Structure::search_tree:
        return problem_of_search_tree(bytes, end);
    }
    return {};
  };
  try {
    const std::string problem = problem_of();
    if (problem.empty()) return 0;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_FILE, H5E_BADVALUE, "%s",
             problem.c_str());
  } catch (const std::bad_alloc&) {  // which must not pass through HDF5, a library in C
    return refuse_for_memory();
  }
  return -1;
}

herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address, std::size_t bytes,
            void* to) {
  note_progress();
  if (Interception::takes(type, address, bytes)) return 0;
  if (const herr_t result = sec2(file).read(inner(file), type, transfer, address, bytes, to);
      result < 0) {
    return result;
  }
  // A file that is being written is not checked, because some of its bytes may still be in HDF5's
  // memory.
  if (!reinterpret_cast<const File*>(file)->is_read_only) return 0;
  const std::span<const std::byte> found(static_cast<const std::byte*>(to), bytes);
  const Structure structure = structure_of(type, found);
  if (structure == Structure::fixed_array && note_index(file, found) < 0) return -1;
  return check(structure, file, transfer, address - file->base_addr, found);
}

herr_t write(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address, std::size_t bytes,
             const void* from) {
  note_progress();
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

/// Returns memory of at least `bytes` for HDF5 to pass to the driver, which does not use it. If a
/// release of HDF5 looked into it, it would find memory that belongs to it. Otherwise its pages are
/// never touched, and use no memory. Returns null if there is none.
void* untouched_memory(std::size_t bytes) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local std::size_t room = 0;
  if (bytes > room || !memory) {
    memory.reset();
    memory.reset(std::calloc(std::max<std::size_t>(bytes, 1), 1));
    room = memory ? bytes : 0;
  }
  return memory.get();
}

/// The error numbers of HDF5 for one call.
struct Errors {
  int all = 0, of_getting = 0;  // the second: a dataset cannot give something
};

herr_t count_error(unsigned, const H5E_error2_t* error, void* to) {
  auto& errors = *static_cast<Errors*>(to);
  ++errors.all;
  errors.of_getting += error->maj_num == H5E_DATASET && error->min_num == H5E_CANTGET ? 1 : 0;
  return 0;
}

/// Whether H5Dget_chunk_storage_size has failed in HDF5 1.10 because the chunk was never written:
/// then only this function and the one that it calls report an error. If an index is damaged, the
/// code that reads the index reports an error below them.
bool is_about_absent_chunk() {
  Errors errors;
  return H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, count_error, &errors) >= 0 && errors.all == 2 &&
         errors.of_getting == 2;
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

std::optional<StoredChunk> locate_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                        std::uint64_t file_bytes) {
  const Session session;
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset, offset.data(), &bytes) < 0) {
    if (is_about_absent_chunk()) H5Eclear2(H5E_DEFAULT);
    return {};
  }
  if (bytes > file_bytes) return StoredChunk{.extent = {file_bytes, bytes}};
  void* const buffer = untouched_memory(bytes);
  if (buffer == nullptr) throw std::bad_alloc();
  const Interception interception;
  StoredChunk chunk;
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &chunk.filters_left_out, buffer) < 0) {
    // If no chunk of the dataset was ever written, HDF5 1.10 reports no bytes and an error. Later
    // releases do so for every chunk that was never written.
    if (bytes == 0) H5Eclear2(H5E_DEFAULT);
    return {};
  }
  // HDF5 does not read a chunk that is stated to have no bytes.
  chunk.extent = interception.extent().value_or(Extent{});
  return chunk;
}

std::optional<Extent> find_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                 std::uint64_t file_bytes) {
  const std::optional<StoredChunk> chunk = locate_chunk(dataset, offset, file_bytes);
  return chunk && chunk->filters_left_out == 0 ? std::optional(chunk->extent) : std::nullopt;
}

std::optional<Extent> allocate_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                     std::size_t bytes) {
  const Session session;
  const void* const buffer = untouched_memory(bytes);
  if (buffer == nullptr) throw std::bad_alloc();
  const Interception interception;
  if (H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), bytes, buffer) < 0) return {};
  return interception.extent();
}

}  // namespace qrtool::hdf5
