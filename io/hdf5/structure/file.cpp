// SPDX-License-Identifier: Apache-2.0
// file.cpp: sets HDF5 up, closes handles, and collects error texts.
#include "io/hdf5/structure/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "core/error.hpp"
#include "io/hdf5/structure/crash.hpp"
#include "io/hdf5/structure/heap_texts.hpp"
#include "io/hdf5/structure/watch.hpp"

namespace qrtool::hdf5 {
namespace {

std::atomic<bool> closing_stopped{false};
// An allocation failed in a session before this one. The library may go on without saying so, and
// fail later, for example on a property that it could not copy.
std::atomic<bool> memory_ran_out{false};

// The file that the sessions of this thread name, the innermost first. Handlers of signals read
// this and the next.
thread_local const char* volatile session_file = nullptr;
thread_local volatile int sessions = 0;  // of this thread, one in another
std::atomic<int> kept_stderr = -1;       // standard error while its number is another file's
// The file that was named last. When a handle is closed, this is probably its file. The end of a
// very long name is cut.
char last_file[4096] = "";

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

/// Opens the library. A library without memory writes to standard error before it can be told not
/// to; no other thread writes at this time.
bool open_quietly() {
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (kept_stderr >= 0 && null >= 0) dup2(null, STDERR_FILENO);
  // This must be the first call. The library's exit handler would crash after a failed write.
  H5dont_atexit();
  const bool is_open = H5open() >= 0 && H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  const int kept = kept_stderr;
  if (kept >= 0) dup2(kept, STDERR_FILENO);
  kept_stderr = -1;
  if (kept >= 0) close(kept);
  if (null >= 0) close(null);
  return is_open;
}

void set_up_library() {
  // The variable would override the property that turns locking off for the temporary files of the
  // output. Values other than FALSE and 0 ask for locking, which reading does anyway.
  const char* locking = std::getenv("HDF5_USE_FILE_LOCKING");
  if (locking && std::string_view(locking) != "FALSE" && std::string_view(locking) != "0") {
    unsetenv("HDF5_USE_FILE_LOCKING");
  }
  if (!open_quietly() || register_stored_texts() < 0) throw std::bad_alloc();
  // The library frees memory instead of keeping it for its next object. Then the sizes that the
  // tool states hold, and memory checkers see reads of memory that the library never wrote.
  H5set_free_list_limits(0, 0, 0, 0, 0, 0);
  // A file must not make the tool open another one.
  H5Lunregister(H5L_TYPE_EXTERNAL);
}

struct Description {
  std::string text;
  bool is_out_of_memory = false;
  std::exception_ptr failure;
};

void add_description(const H5E_error2_t* error, Description& description) {
  auto& [joined, is_out_of_memory, failure] = description;
  is_out_of_memory = is_out_of_memory ||
                     (error->maj_num == H5E_RESOURCE && error->min_num == H5E_NOSPACE) ||
                     error->min_num == H5E_CANTALLOC;
  if (error->desc && *error->desc) {
    if (!joined.empty()) joined += "; ";
    joined += error->desc;
  }
}

herr_t append_description(unsigned, const H5E_error2_t* error, void* to) {
  auto& description = *static_cast<Description*>(to);
  return keep_exception(description.failure, [&] { add_description(error, description); });
}

}  // namespace

Session::Mark::Mark(const char* file) : outer_file_(session_file) {
  if (sessions == 0) errno = 0;  // from here on it says whether an allocation failed
  if (file != nullptr) session_file = file;
  if (sessions == 0) note_entry(session_file);
  sessions = sessions + 1;
}

Session::Mark::~Mark() {
  if (errno == ENOMEM) memory_ran_out = true;
  if (sessions == 1) note_exit();
  session_file = outer_file_;
  sessions = sessions - 1;
}

Session::Session(const char* file) : lock_(library_mutex()), mark_(file) {
  static const bool ready = (set_up_library(), true);
  (void)ready;
  // In thread-safe builds every thread has its own setting for printing errors.
  thread_local const bool quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  (void)quiet;
}

bool is_in_library() noexcept { return sessions > 0; }
int message_descriptor() noexcept {
  const int kept = kept_stderr.load();
  return kept >= 0 ? kept : STDERR_FILENO;
}

void remember_file(const std::string& shown) noexcept {
  last_file[shown.copy(last_file, sizeof last_file - 1)] = '\0';
}

const char* file_in_library() noexcept { return session_file; }

void stop_closing() noexcept { closing_stopped = true; }
bool is_closing_stopped() noexcept { return closing_stopped; }

bool Handle::close() noexcept {
  const hid_t id = std::exchange(id_, H5I_INVALID_HID);
  if (id < 0) return true;
  if (closing_stopped) return false;
  const Session session(session_file == nullptr && *last_file ? last_file : nullptr);
  return close_(id) >= 0;
}

std::string take_error() {
  Description error{.text = {}, .is_out_of_memory = errno == ENOMEM, .failure = {}};
  if (memory_ran_out.exchange(false)) error.is_out_of_memory = true;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append_description, &error);
  H5Eclear2(H5E_DEFAULT);
  if (error.failure) std::rethrow_exception(error.failure);
  if (error.is_out_of_memory) {
    const char* file = file_in_library();
    throw LimitError(
        fmt::format("{}out of memory in the HDF5 library ({})",
                    file != nullptr ? fmt::format("{}: ", file) : "", innermost_error(error.text)),
        file != nullptr ? "the file may be damaged; else try a smaller --memory"
                        : "try a smaller --memory or fewer --threads");
  }
  return error.text;
}

std::string innermost_error(const std::string& error) {
  const std::size_t last = error.rfind("; ");
  return last == std::string::npos ? error : error.substr(last + 2);
}

std::vector<Box> cut_into_boxes(std::span<const index_t> leading, index_t first, index_t count) {
  const std::size_t rank = leading.size();
  // below[d] is the number of matrices under one index of dimension d.
  std::vector<index_t> below(rank, 1);
  for (std::size_t d = rank; d-- > 1;) below[d - 1] = below[d] * leading[d];

  std::vector<Box> boxes;
  while (count > 0) {
    Box box{std::vector<hsize_t>(rank), std::vector<hsize_t>(rank, 1), 1};
    // The box spans as many indices as possible of the outermost dimension that begins a whole
    // index here.
    std::size_t outer = 0;
    while (outer < rank && (first % below[outer] != 0 || count < below[outer])) ++outer;
    for (std::size_t d = 0; d < rank; ++d) {
      const index_t index = first / below[d] % leading[d];
      box.start[d] = static_cast<hsize_t>(index);
      if (d == outer) {
        const index_t taken = std::min(leading[d] - index, count / below[d]);
        box.count[d] = static_cast<hsize_t>(taken);
        box.matrices = taken * below[d];
      } else if (d > outer) {
        box.count[d] = static_cast<hsize_t>(leading[d]);
      }
    }
    first += box.matrices;
    count -= box.matrices;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

}  // namespace qrtool::hdf5
