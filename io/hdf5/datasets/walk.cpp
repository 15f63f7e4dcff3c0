// SPDX-License-Identifier: Apache-2.0
// walk.cpp: opens groups by their addresses, which costs the same at every depth, and notes those
// that it has seen.
#include "io/hdf5/datasets/walk.hpp"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/hdf5/structure/watch.hpp"

namespace qrtool::hdf5 {
namespace {

struct Link {
  std::string name;
  H5L_type_t type = H5L_TYPE_ERROR;
  haddr_t address = HADDR_UNDEF;  // of what a hard link leads to
};

/// The links of a group. If groups contain each other, the links seem to have more bytes than the
/// file.
struct Links {
  std::vector<Link> all;
  std::uint64_t most_bytes = 0, bytes = 0;
  std::exception_ptr failure;
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* to) {
  auto& links = *static_cast<Links*>(to);
  note_progress();
  const herr_t result = keep_exception(links.failure, [&] {
    const bool is_hard = info->type == H5L_TYPE_HARD;
    links.all.push_back({name, info->type, is_hard ? info->u.address : HADDR_UNDEF});
    links.bytes += links.all.back().name.size() + 1;
  });
  return links.bytes > links.most_bytes ? -1 : result;
}

/// A group on the way down, and how many of its links are done.
struct Level {
  Handle group;
  std::vector<Link> links;
  std::size_t next = 0, path_bytes = 0;  // of the group's own path
  bool is_octave_variable = false;
};

class Walk {
 public:
  explicit Walk(const InputFile& file) : file_(file) {}
  Found run();

 private:
  [[noreturn]] void throw_damaged() const;
  std::vector<Link> links_of(hid_t group) const;
  void descend(Handle group, bool is_octave_variable);
  void follow(const Level& level, const Link& link);
  void add_dataset(const Level& level, const Link& link);
  void count_path(std::size_t bytes);

  const InputFile& file_;
  Found found_;
  std::vector<Level> levels_;
  std::string path_;  // of what the walk has reached
  std::unordered_set<haddr_t> seen_;
  std::size_t path_bytes_ = 0;  // of all that was found
};

void Walk::throw_damaged() const {
  take_error();
  throw InputError(fmt::format("{}: damaged HDF5 file (its groups cannot be read)", file_.shown));
}

std::vector<Link> Walk::links_of(hid_t group) const {
  Links links;
  links.most_bytes = file_.size;
  const herr_t result =
      H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_link, &links);
  if (links.failure) std::rethrow_exception(links.failure);
  if (result < 0) throw_damaged();
  return std::move(links.all);
}

void Walk::descend(Handle group, bool is_octave_variable) {
  std::vector<Link> links = links_of(group);
  levels_.push_back({.group = std::move(group),
                     .links = std::move(links),
                     .path_bytes = path_.size(),
                     .is_octave_variable = is_octave_variable});
}

void Walk::count_path(std::size_t bytes) {
  constexpr std::size_t most = std::size_t{64} << 20;
  path_bytes_ += bytes;
  if (path_bytes_ <= most) return;
  throw LimitError(fmt::format("{}: the paths of its datasets have more than {}", file_.shown,
                               format_bytes(most)),
                   fmt::format("name the dataset, as in {}:/PATH", file_.shown));
}

void Walk::add_dataset(const Level& level, const Link& link) {
  if (!level.is_octave_variable) {
    count_path(path_.size());
    found_.datasets.push_back({.path = path_, .address = link.address});
  } else if (link.name == "value") {
    count_path(level.path_bytes);
    found_.datasets.push_back({.path = path_.substr(0, level.path_bytes),
                               .address = link.address,
                               .is_octave_variable = true});
  }
}

/// Follows a link; path_ is its path. A group becomes the next level.
void Walk::follow(const Level& level, const Link& link) {
  if (link.type == H5L_TYPE_EXTERNAL) {
    count_path(path_.size());
    found_.external_links.push_back(escape(path_));
  }
  if (link.type != H5L_TYPE_HARD || !seen_.insert(link.address).second) return;
  H5O_info_t info{};
  if (H5Oget_info_by_name2(level.group, link.name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
    throw_damaged();
  if (info.type == H5O_TYPE_DATASET) return add_dataset(level, link);
  if (info.type != H5O_TYPE_GROUP) return;
  Handle group(H5Oopen_by_addr(file_.handle, link.address), H5Oclose);
  if (!group) throw_damaged();
  const bool is_octave = is_octave_variable(file_, group);
  descend(std::move(group), is_octave);
}

Found Walk::run() {
  Handle root(H5Gopen2(file_.handle, "/", H5P_DEFAULT), H5Gclose);
  H5O_info_t info{};
  if (!root || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) throw_damaged();
  seen_.insert(info.addr);
  descend(std::move(root), /*is_octave_variable=*/false);
  while (!levels_.empty()) {
    const std::size_t depth = levels_.size() - 1;
    path_.resize(levels_[depth].path_bytes);
    if (levels_[depth].next == levels_[depth].links.size()) {
      levels_.pop_back();
      continue;
    }
    const Link link = std::move(levels_[depth].links[levels_[depth].next++]);
    path_ += "/" + link.name;
    follow(levels_[depth], link);
  }
  return std::move(found_);
}

}  // namespace

Found find_all(const InputFile& file) {
  const Session session(file.shown);
  return Walk(file).run();
}

}  // namespace qrtool::hdf5
