// SPDX-License-Identifier: Apache-2.0
// atomic_file.cpp: temporary file, lock, reservation, sync, exchange of names.
#include "io/file/atomic_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/file_set.hpp"
#include "io/file/free_bytes.hpp"

namespace qrtool {
namespace {

// Slots are fixed memory with lock-free atomics, because a signal handler reads them.
struct Slot {
  enum State : int { free, claimed, live };
  std::atomic<int> state{free};
  std::array<char, PATH_MAX> path{};
};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<Slot, 32> slots;
std::atomic<int> names_that_change = 0;
std::atomic<bool> is_ending = false;  // the temporary files were removed: no more may appear
static_assert(std::atomic<bool>::is_always_lock_free);

int register_temporary(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    int expected = Slot::free;
    if (!slots[i].state.compare_exchange_strong(expected, Slot::claimed)) continue;
    std::memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
    slots[i].state = Slot::live;
    return static_cast<int>(i);
  }
  return -1;
}

void release_slot(int slot) {
  if (slot >= 0) slots[static_cast<std::size_t>(slot)].state = Slot::free;
}

[[noreturn]] void throw_cannot_write(const std::string& path, const std::string& reason,
                                     std::string hint = {}) {
  if (reason == std::strerror(ENOMEM)) {
    throw LimitError(fmt::format("cannot write '{}': out of memory", escape(path)),
                     "try a smaller --memory or fewer --threads");
  }
  throw OutputError(fmt::format("cannot write '{}': {}", escape(path), reason), std::move(hint));
}

[[noreturn]] void throw_errno(const std::string& path, int error) {
  throw_cannot_write(path, std::strerror(error));
}

/// Refuses a symbolic link of another user in a directory like /tmp, in which everybody may create
/// names: it may point to any file of this user. Linux does not follow such a link either if
/// fs.protected_symlinks is 1. `link` is the status of the link.
void refuse_planted_link(const std::string& path, const struct stat& link) {
  struct stat directory {};
  if (stat(directory_of(path).c_str(), &directory) != 0) throw_errno(path, errno);
  const bool is_for_all = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
  if (!is_for_all || link.st_uid == geteuid() || link.st_uid == directory.st_uid) return;
  throw_cannot_write(path,
                     "it is a symbolic link of another user in a directory that is open to all",
                     "choose another name");
}

/// Returns the name that the file gets. If `path` is a symbolic link, the link stays and the file
/// that it points to is replaced, as cp does.
std::string resolve_target(const std::string& path, bool force) {
  struct stat info {};
  if (path.empty()) throw OutputError("the name of the output is empty");
  if (lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) throw_errno(path, errno);
    if (path.back() == '/')
      throw_cannot_write(path, "there is no such directory",
                         "name a file in a directory that exists");
    return path;
  }
  if (S_ISLNK(info.st_mode)) refuse_planted_link(path, info);
  if (stat(path.c_str(), &info) != 0) {
    throw_cannot_write(
        path, errno == ENOENT ? "it is a symbolic link that leads nowhere" : std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) throw_cannot_write(path, "it is a directory");
  if (S_ISFIFO(info.st_mode)) throw_cannot_write(path, "it is a pipe, not a file");
  if (!S_ISREG(info.st_mode)) throw_cannot_write(path, "it is a device or socket, not a file");
  if (!force)
    throw OutputError(fmt::format("'{}' exists", escape(path)), "use --force to replace it");
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  if (error) throw_cannot_write(path, error.message());
  return target.string();
}

struct SplitPath {
  std::string directory, name;  // directory ends in '/', or is empty
};

SplitPath split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

/// Returns the part of a temporary file's name before the process id. A long name is cut to a
/// length that the file system accepts.
std::string temporary_prefix(const std::string& target) {
  constexpr std::size_t longest = 200;
  return "." + split(target).name.substr(0, longest) + ".qrtool-";
}

/// Whether `path` still names the file behind `descriptor`.
bool is_same_file(int descriptor, const std::string& path) {
  struct stat open_file {
  }, named{};
  return fstat(descriptor, &open_file) == 0 && lstat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/// Returns the directory on which the file system of `path` is mounted.
std::string mount_point(const std::string& path) {
  std::error_code error;
  std::filesystem::path here = std::filesystem::canonical(directory_of(path), error);
  struct stat info {};
  if (error || stat(here.c_str(), &info) != 0) return directory_of(path);
  const dev_t device = info.st_dev;
  while (here.has_relative_path()) {
    if (stat(here.parent_path().c_str(), &info) != 0 || info.st_dev != device) break;
    here = here.parent_path();
  }
  return here.string();
}

mode_t default_mode() {
  // The mask can only be read by setting it.
  const mode_t mask = umask(077);
  umask(mask);
  return static_cast<mode_t>(0666) & ~mask;
}

/// Exchanges the names of two files. Returns false if the file system cannot do that.
bool exchange_names(const char* one, const char* other, int& error) {
  error = renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0 ? 0 : errno;
  return error != EINVAL && error != ENOSYS && error != EOPNOTSUPP;
}

/// Renames a file, but replaces no existing one. Returns 0 or errno.
int rename_without_replacing(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  // Some file systems do not know the flag. link() does not replace a file either.
  if (link(from, to) == 0) {
    unlink(from);
    return 0;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  struct stat info {};
  if (lstat(to, &info) == 0) return EEXIST;
  return rename(from, to) == 0 ? 0 : errno;
}

}  // namespace

void require_writable(const std::string& path, bool force) {
  const std::string directory = directory_of(resolve_target(path, force));
  if (access(directory.c_str(), W_OK | X_OK) == 0) return;
  throw_cannot_write(path, errno == ENOENT ? "its directory does not exist" : std::strerror(errno));
}

void remove_stale(const std::string& target) {
  constexpr std::string_view suffix = ".tmp";
  const std::string prefix = temporary_prefix(target);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(directory_of(target).c_str()),
                                                      closedir);
  if (!directory) return;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    const int in_directory = dirfd(directory.get());
    const int descriptor =
        openat(in_directory, entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    struct stat info {};
    if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) &&
        flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      unlinkat(in_directory, entry->d_name, 0);
    }
    close(descriptor);
  }
}

std::string directory_of(const std::string& path) {
  const std::string directory = split(path).directory;
  return directory.empty() ? "." : directory;
}

std::string temporary_name(const std::string& target) {
  std::random_device random;
  return fmt::format("{}{}{}-{:08x}.tmp", split(target).directory, temporary_prefix(target),
                     getpid(), random());
}

std::optional<AtomicFile::Rights> AtomicFile::rights_of(const std::string& target) {
  struct stat info {};
  if (stat(target.c_str(), &info) != 0) return std::nullopt;
  return Rights{.mode = info.st_mode & 0777, .owner = info.st_uid, .group = info.st_gid};
}

AtomicFile::AtomicFile(const std::string& path, bool force)
    : path_(path),
      target_(resolve_target(path, force)),
      force_(force),
      replaced_rights_(rights_of(target_)) {
  remove_stale(target_);
  // Another run may remove the new file as a stale one before it is locked: try again then.
  for (int attempt = 0; attempt < 8; ++attempt) {
    temporary_path_ = temporary_name(target_);
    const int error = create();
    if (descriptor_ >= 0) {
      fchmod(descriptor_, 0600);  // the umask may forbid even the owner to write
      flock(descriptor_, LOCK_EX | LOCK_NB);
      if (is_same_file(descriptor_, temporary_path_)) return;
      unlink(temporary_path_.c_str());  // the file is still there if its status cannot be read
      close(descriptor_);
    }
    release_slot(slot_);
    if (descriptor_ < 0 && error != EEXIST) {
      throw_cannot_write(path_,
                         error == ENOENT ? "its directory does not exist" : std::strerror(error));
    }
  }
  throw_cannot_write(path_, "no temporary file can be created beside it");
}

/// Creates the temporary file. Returns 0 or the number of an error.
int AtomicFile::create() {
  const NamesChange change;
  slot_ = register_temporary(temporary_path_);
  descriptor_ =
      open(temporary_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  return descriptor_ < 0 ? errno : 0;
}

AtomicFile::~AtomicFile() {
  gives_up_ = true;
  if (reserving_.valid()) reserving_.wait();
  if (committed_) return;
  unlink(temporary_path_.c_str());
  // HDF5 may hold another descriptor until the process ends. Truncating gives back the space now.
  (void)!ftruncate(descriptor_, 0);
  release_slot(slot_);
  close(descriptor_);
}

void AtomicFile::throw_full(std::uint64_t wanted, std::uint64_t available) const {
  throw_cannot_write(path_, fmt::format("{} needed, {} free on {}", format_bytes(wanted),
                                        format_bytes(available), escape(mount_point(target_))));
}

/// Piece by piece, since other threads that use the file wait for a call to end. Returns 0 or the
/// number of an error.
int AtomicFile::reserve_pieces(std::uint64_t bytes) const {
  constexpr std::uint64_t piece = std::uint64_t{64} << 20;
  for (std::uint64_t done = 0; done < bytes && !gives_up_;) {
    const std::uint64_t next = std::min(piece, bytes - done);
    if (fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(done),
                  static_cast<off_t>(next)) == 0)
      done += next;
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

void AtomicFile::reserve(std::uint64_t bytes) {
  if (bytes == 0) return;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    throw_cannot_write(path_,
                       fmt::format("{} needed, the file size limit is {}", format_bytes(bytes),
                                   format_bytes(limit.rlim_cur)),
                       "raise it with ulimit -f");
  }
  // The free space is checked first, so that a disk that is too small is not filled even for a
  // moment.
  if (const std::uint64_t available = free_bytes(descriptor_); available < bytes)
    throw_full(bytes, available);
  if (bytes > static_cast<std::uint64_t>(INT64_MAX)) throw_errno(path_, EFBIG);
  require_space();  // of an earlier call
  wanted_bytes_ = bytes;
  const auto reserve_all = [this, bytes] { return reserve_pieces(bytes); };
  constexpr std::uint64_t least_beside = std::uint64_t{32} << 20;
  if (bytes >= least_beside) {
    try {
      reserving_ = std::async(std::launch::async, reserve_all);
      return;
    } catch (const std::system_error&) {  // there is no thread left
    }
  }
  reserving_ = std::async(std::launch::deferred, reserve_all);
  require_space();
}

void AtomicFile::require_space() {
  if (!reserving_.valid()) return;
  const int error = reserving_.get();
  reserved_ = error == 0;
  if (reserved_ || error == EOPNOTSUPP || error == ENOSYS) return;
  if (error == ENOSPC) throw_full(wanted_bytes_, free_bytes(descriptor_));
  throw_errno(path_, error);
}

void AtomicFile::set_rights() const {
  mode_t mode = replaced_rights_ ? replaced_rights_->mode : default_mode();
  if (replaced_rights_) {
    const auto [old_mode, owner, group] = *replaced_rights_;
    const bool is_kept =
        fchown(descriptor_, owner, group) == 0 || fchown(descriptor_, -1, group) == 0;
    // Another group must not get the rights of the old one.
    if (!is_kept) mode &= ~static_cast<mode_t>(S_IRWXG);
  }
  if (fchmod(descriptor_, mode) != 0) throw_errno(path_, errno);
}

void AtomicFile::prepare() {
  require_space();
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) throw_errno(path_, errno);
  // Truncating a file to its present length frees the space that was reserved beyond it.
  if (reserved_ && ftruncate(descriptor_, info.st_size) != 0) throw_errno(path_, errno);
  set_rights();
  if (fsync(descriptor_) != 0) throw_errno(path_, errno);
}

void AtomicFile::publish() {
  // Readers may open the file from now on. A shared lock still protects it from remove_stale().
  flock(descriptor_, LOCK_SH | LOCK_NB);
  const char *from = temporary_path_.c_str(), *to = target_.c_str();
  struct stat info {};
  int error = 0;
  if (!force_) {
    error = rename_without_replacing(from, to);
  } else if (lstat(to, &info) == 0 && exchange_names(from, to, error)) {
    name_ = Name::exchanged;
  } else {
    error = rename(from, to) == 0 ? 0 : errno;
  }
  if (error == EEXIST) {
    throw OutputError(fmt::format("'{}' was created meanwhile", escape(path_)),
                      "use --force to replace it");
  }
  if (error != 0) {
    name_ = Name::temporary;
    throw_errno(path_, error);
  }
  if (name_ == Name::temporary) name_ = Name::final;
}

void AtomicFile::withdraw() noexcept {
  if (name_ == Name::temporary) return;
  int error = 0;
  const bool is_undone =
      name_ == Name::exchanged
          ? exchange_names(target_.c_str(), temporary_path_.c_str(), error) && error == 0
          : !replaced_rights_ && is_same_file(descriptor_, target_) && unlink(target_.c_str()) == 0;
  // If the rename cannot be undone, the file stays: it is complete.
  if (is_undone) {
    name_ = Name::temporary;
  } else {
    settle();
  }
}

void AtomicFile::settle() noexcept {
  if (name_ == Name::exchanged) unlink(temporary_path_.c_str());
  committed_ = true;
  release_slot(std::exchange(slot_, -1));
  close(std::exchange(descriptor_, -1));
}

void AtomicFile::commit() {
  FileSet files;
  files.add(*this);
  files.commit();
}

std::vector<std::string> live_temporary_files() {
  std::vector<std::string> paths;
  for (const Slot& slot : slots) {
    if (slot.state.load() == Slot::live) paths.emplace_back(slot.path.data());
  }
  return paths;
}

NamesChange::NamesChange() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
  ++names_that_change;
  if (!is_ending) return;
  --names_that_change;
  for (;;) pause();
}

NamesChange::~NamesChange() {
  --names_that_change;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void adopt_temporary_file(const std::string& temporary_path) { register_temporary(temporary_path); }

Removed remove_temporary_files() noexcept {
  is_ending = true;
  while (names_that_change.load() > 0) poll(nullptr, 0, 1);
  Removed removed = Removed::none;
  for (Slot& slot : slots) {
    if (slot.state.load() != Slot::live) continue;
    const bool is_unlinked = unlink(slot.path.data()) == 0;
    if (is_unlinked) removed = Removed::some;
    if (!is_unlinked && removed == Removed::none) removed = Removed::gone;
  }
  return removed;
}

}  // namespace qrtool
