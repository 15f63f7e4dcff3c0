// SPDX-License-Identifier: Apache-2.0
// members.cpp: lists the members of a .npz and finds the one that is meant.
#include "io/npy/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/npy/archive.hpp"
#include "io/npy/reader.hpp"
#include "io/read/choice.hpp"

namespace qrtool::npy {
namespace {

// Every member that is looked at must be unpacked a little.
constexpr std::size_t most_looked_at = 1000;

/// Returns the only member that holds matrices or, if vectors are accepted, numbers of any shape.
index_t find_only(Archive& archive, bool takes_vectors) {
  const std::string& file = archive.file().shown;
  const std::vector<std::string>& names = archive.names();
  if (names.empty()) throw InputError(fmt::format("{}: holds no member", file));
  if (names.size() == 1) return 0;
  if (names.size() > most_looked_at) {
    throw InputError(fmt::format("{}: {} members", file, names.size()),
                     fmt::format("choose one, as in {}:{}", file, escape(names.front())));
  }
  std::vector<std::string> matrices, others;
  // If vectors are accepted, the example is a member of one dimension: right sides and weights are
  // mostly vectors.
  index_t last = -1, example = -1;
  bool has_vector = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Header header = archive.array(static_cast<index_t>(i)).header;
    const bool is_vector = takes_vectors && header.dims.size() == 1;
    const std::string shown = escape(names[i]), obstacle = obstacle_of(header, is_vector).text;
    if (!obstacle.empty()) {
      others.push_back(shown + " " + obstacle);
      continue;
    }
    matrices.push_back(
        fmt::format("{} ({} {})", shown, shape_text(header.dims), header.stored_type));
    last = static_cast<index_t>(i);
    if (example < 0 || (is_vector && !has_vector)) example = last;
    has_vector = has_vector || is_vector;
  }
  const char* const what = takes_vectors ? "numbers" : "matrices";
  if (matrices.empty())
    throw InputError(fmt::format("{}: holds no {}: {}", file, what, list_text(others)));
  if (matrices.size() == 1) return last;
  throw InputError(
      fmt::format("{}: {} members with {}: {}", file, matrices.size(), what, list_text(matrices)),
      fmt::format("choose one, as in {}:{}", file,
                  escape(names[static_cast<std::size_t>(example)])));
}

}  // namespace

std::unique_ptr<Reader> open_npz(const InputSpec& spec) {
  const std::shared_ptr<Archive> archive = Archive::open(spec.path, spec.scratch);
  const std::string name = spec.dataset.substr(spec.dataset.starts_with('/') ? 1 : 0);
  const index_t member =
      name.empty() ? find_only(*archive, spec.takes_vectors) : archive->find(name);
  if (member < 0) throw_unknown(archive->file().shown, "member", name, archive->names());
  return read_array(archive->array(member), archive->names()[static_cast<std::size_t>(member)],
                    /*is_vector=*/false, spec);
}

}  // namespace qrtool::npy
