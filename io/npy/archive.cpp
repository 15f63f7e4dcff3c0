// SPDX-License-Identifier: Apache-2.0
// archive.cpp: libzip reads the directory, compares checksums and inflates; what it says is checked
// against the header of each array.
#include "io/npy/archive.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/npy/zip_directory.hpp"

namespace qrtool::npy {
namespace {

constexpr std::size_t spooled_bytes = std::size_t{1} << 20;
constexpr std::string_view array_ending = ".npy";

std::string without_ending(const std::string& name) {
  return name.ends_with(array_ending) ? name.substr(0, name.size() - array_ending.size()) : name;
}

[[noreturn]] void throw_damaged(const std::string& shown, const std::string& reason) {
  throw InputError(fmt::format("{}: damaged zip archive ({})", shown, escape(reason)));
}

std::string_view method_name(int method) {
  switch (method) {
    case ZIP_CM_BZIP2:
      return "bzip2";
    case ZIP_CM_LZMA:
      return "lzma";
    case ZIP_CM_DEFLATE64:
      return "deflate64";
    case 93:
      return "zstd";
    default:
      return "an unknown method";
  }
}

}  // namespace

std::shared_ptr<Archive> Archive::open(const std::string& path, const std::string& scratch) {
  auto archive = std::make_shared<Archive>(std::make_shared<const OpenFile>(path), scratch);
  archive->open_directory();
  archive->collect_names();
  archive->refuse_foreign();
  return archive;
}

Archive::Archive(std::shared_ptr<const OpenFile> file, std::string scratch)
    : file_(std::move(file)), scratch_(std::move(scratch)) {}

void Archive::open_directory() {
  stream_ = fdopen(dup(file_->descriptor), "r");
  if (stream_ == nullptr) throw_damaged(file_->shown, std::strerror(errno));
  zip_error_t error{};
  zip_source_t* const source = zip_source_filep_create(stream_, 0, -1, &error);
  if (source == nullptr) {
    std::fclose(stream_);
    throw_damaged(file_->shown, zip_error_strerror(&error));
  }
  // ZIP_CHECKCONS compares the directory with the local header of each member.
  archive_.reset(zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error));
  if (archive_) {
    if (const std::string problem = problem_of_directory(*file_); !problem.empty())
      throw_damaged(file_->shown, problem);
    return;
  }
  zip_source_free(source);
  if (zip_error_code_zip(&error) == ZIP_ER_NOZIP) {
    throw InputError(
        fmt::format("{}: not a .npz file (no zip archive, or a truncated one)", file_->shown));
  }
  throw_damaged(file_->shown, zip_error_strerror(&error));
}

void Archive::collect_names() {
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  std::map<std::string, index_t> seen;
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), 0);
    if (name == nullptr) throw_damaged(file_->shown, "a member without a name");
    names_.push_back(without_ending(name));
    if (!seen.try_emplace(names_.back(), i).second) {
      throw InputError(
          fmt::format("{}: two members are named {}", file_->shown, escape(names_.back())));
    }
  }
}

void Archive::refuse_foreign() const {
  const bool is_excel = find("xl/workbook.xml") >= 0;
  // The first is of Office Open XML, the second of OpenDocument.
  if (is_excel || find("[Content_Types].xml") >= 0 || find("META-INF/manifest.xml") >= 0)
    throw InputError(fmt::format("{}: {}; it cannot be read", file_->shown,
                                 is_excel ? "an Excel workbook" : "a spreadsheet or document"),
                     "save the sheet as CSV");
  for (const std::string& name : names_)
    if (name == "data.pkl" || name.ends_with("/data.pkl"))
      throw InputError(fmt::format("{}: a file of PyTorch; it cannot be read", file_->shown),
                       fmt::format("in Python: numpy.savez('a.npz', **dict((k, v.numpy()) for k, v "
                                   "in torch.load('{}').items()))",
                                   file_->shown));
  if (!names_.empty() && std::ranges::all_of(names_, has_text_ending))
    throw InputError(
        fmt::format("{}: a zip archive of text; it cannot be read", file_->shown),
        fmt::format("unpack it: unzip -p {} {} > {}", file_->shown, escape(names_.front()),
                    escape(names_.front().substr(names_.front().rfind('/') + 1))));
}

index_t Archive::find(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), without_ending(name));
  return found == names_.end() ? -1 : found - names_.begin();
}

std::string Archive::shown_name(index_t member) const {
  return fmt::format("{}: {}", file_->shown, escape(names_[static_cast<std::size_t>(member)]));
}

zip_stat_t Archive::describe(index_t member) const {
  zip_stat_t about;
  zip_stat_init(&about);
  constexpr zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(member), 0, &about) != 0 ||
      (about.valid & needed) != needed) {
    throw_damaged(shown_name(member), zip_strerror(archive_.get()));
  }
  return about;
}

void Archive::require_readable(const zip_stat_t& about, const std::string& shown) const {
  const bool is_encrypted =
      (about.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && about.encryption_method != ZIP_EM_NONE;
  if (is_encrypted) {
    throw InputError(fmt::format("{}: the member is encrypted", shown),
                     "unpack the archive with its password, and give the .npy file");
  }
  if (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE) {
    throw InputError(
        fmt::format("{}: the member is compressed with {} (method {}); stored and deflated members "
                    "can be read",
                    shown, method_name(about.comp_method), about.comp_method),
        "write it again with numpy.savez or numpy.savez_compressed");
  }
  if (about.comp_method == ZIP_CM_STORE && about.size != about.comp_size)
    throw_damaged(shown, "a member that is not compressed has two sizes");
  // Deflate cannot compress by more than 1032 to 1: a member with a larger ratio is an error or an
  // attack.
  constexpr std::uint64_t harmless_bytes = std::uint64_t{1} << 30, highest_ratio = 1100;
  if (about.size > harmless_bytes && about.size / highest_ratio > about.comp_size) {
    throw LimitError(fmt::format("{}: the member claims {}, packed into {}", shown,
                                 format_bytes(about.size), format_bytes(about.comp_size)));
  }
}

Archive::OpenMember Archive::open_member(index_t member, const std::string& shown) const {
  OpenMember open(zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(member), 0));
  if (!open) throw_damaged(shown, zip_strerror(archive_.get()));
  return open;
}

/// Reads `bytes` bytes, or fewer at the end of the member.
std::size_t Archive::read(const OpenMember& open, void* to, std::size_t bytes,
                          const std::string& shown) const {
  std::size_t done = 0;
  while (done < bytes) {
    const zip_int64_t got = zip_fread(open.get(), static_cast<std::byte*>(to) + done, bytes - done);
    if (got < 0) throw_damaged(shown, zip_file_strerror(open.get()));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

/// libzip compares the checksum when it is asked for bytes beyond the end.
void Archive::require_end(const OpenMember& open, const std::string& shown) const {
  char beyond = 0;
  if (read(open, &beyond, 1, shown) != 0) throw_damaged(shown, "the member is longer than it says");
}

ArrayParts Archive::array(index_t member) {
  const std::lock_guard lock(mutex_);
  const std::string shown = shown_name(member);
  const zip_stat_t about = describe(member);
  require_readable(about, shown);
  std::string first(std::min<std::uint64_t>(about.size, most_header_bytes), '\0');
  first.resize(read(open_member(member, shown), first.data(), first.size(), shown));
  const bool is_stored = about.comp_method == ZIP_CM_STORE;
  ArrayParts parts{.file = file_,
                   .shown = shown,
                   .header = parse_header(first, about.size, shown),
                   .find_numbers = {},
                   .needs_copy = !is_stored};
  // No number of an empty array is ever read, after which the checksum would be compared.
  if (parts.header.data_bytes() == 0) {
    const OpenMember open = open_member(member, shown);
    if (read(open, first.data(), first.size(), shown) != parts.header.bytes)
      throw_damaged(shown, "an empty array has numbers");
    require_end(open, shown);
  }
  parts.find_numbers = [self = shared_from_this(), member, shown, is_stored,
                        header = parts.header] {
    return is_stored ? self->check_in_place(member, header, shown)
                     : self->unpack(member, header, shown);
  };
  return parts;
}

std::string Archive::text(index_t member) {
  constexpr std::size_t longest = 65536, width = 4;
  const ArrayParts parts = array(member);
  const std::size_t length = parts.header.characters;
  if (length == 0 || length > longest) return {};
  const std::lock_guard lock(mutex_);
  const OpenMember open = open_member(member, parts.shown);
  std::string bytes(parts.header.bytes + width * length, '\0');
  if (read(open, bytes.data(), bytes.size(), parts.shown) != bytes.size())
    throw_damaged(parts.shown, "the member is shorter than it says");
  require_end(open, parts.shown);
  std::string text;
  for (std::size_t i = parts.header.bytes; i < bytes.size(); i += width) {
    const bool is_ascii = (bytes[i] & 0x80) == 0 && bytes.substr(i + 1, 3) == std::string(3, '\0');
    if (!is_ascii) return {};
    text += bytes[i];
  }
  return text;
}

/// Has libzip read the whole member, and compares it with the file at the place that was found.
NumbersPlace Archive::check_in_place(index_t member, const Header& header,
                                     const std::string& shown) {
  const std::lock_guard lock(mutex_);
  const OpenMember open = open_member(member, shown);
  std::vector<std::byte> piece(spooled_bytes), in_file(spooled_bytes);
  std::uint64_t start = 0, done = 0;
  while (const std::size_t got = read(open, piece.data(), spooled_bytes, shown)) {
    if (done == 0) start = static_cast<std::uint64_t>(ftello(stream_)) - got;
    const TwoParts parts{{{in_file.data(), got}, {nullptr, 0}}};
    if (read_at(file_->descriptor, start + done, parts) != got ||
        std::memcmp(piece.data(), in_file.data(), got) != 0) {
      file_->stamp.require_unchanged(file_->descriptor, file_->shown);
      throw_damaged(shown, "the member is not where libzip has read it");
    }
    done += got;
  }
  return {.scratch = {}, .start = start + header.bytes};
}

NumbersPlace Archive::unpack(index_t member, const Header& header, const std::string& shown) {
  NumbersPlace place{.scratch = scratch_for(shown, scratch_, header.data_bytes())};
  const std::lock_guard lock(mutex_);
  const OpenMember open = open_member(member, shown);
  std::string before(header.bytes, '\0');
  bool is_whole = read(open, before.data(), before.size(), shown) == before.size();
  std::vector<std::byte> piece(spooled_bytes);
  for (std::uint64_t done = 0; is_whole && done < header.data_bytes(); done += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), header.data_bytes() - done));
    is_whole = read(open, piece.data(), piece.size(), shown) == piece.size();
    if (is_whole) place.scratch.write(done, piece.data(), piece.size());
  }
  if (!is_whole) throw_damaged(shown, "the member is shorter than it says");
  require_end(open, shown);
  return place;
}

}  // namespace qrtool::npy
