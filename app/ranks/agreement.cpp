// SPDX-License-Identifier: Apache-2.0
// agreement.cpp: compares what the ranks have with what rank 0 has.
#include "app/ranks/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/checksum/content_hash.hpp"

namespace qrtool {
namespace {

std::string text_of(const Params& params) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : params) parts.push_back(fmt::format("{}={}", name, value));
  return parts.empty() ? "none" : join(parts, " ");
}

/// Returns the options as lines of text, which can be compared and sent.
std::string text_of(const std::vector<GivenOption>& options) {
  std::string text;
  for (const auto& [name, value] : options)
    text += name + (value.empty() ? "" : " ") + escape(value) + '\n';
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

/// Returns the first of `lines` that `others` do not hold, and the line that they have for that
/// option.
std::optional<std::pair<std::string, std::string>> first_difference(
    const std::vector<std::string>& lines, const std::vector<std::string>& others) {
  const auto name_of = [](const std::string& line) { return line.substr(0, line.find(' ')); };
  for (const std::string& line : lines) {
    if (std::find(others.begin(), others.end(), line) != others.end()) continue;
    const auto other = std::find_if(others.begin(), others.end(), [&](const std::string& each) {
      return name_of(each) == name_of(line);
    });
    return std::pair(line, other == others.end() ? "no " + name_of(line) : *other);
  }
  return std::nullopt;
}

/// Returns a source in words, without its name, which may differ from rank to rank.
std::string shape_in_words(const Source& source) {
  return fmt::format("{} of {}x{} {}, {} order", source.count(), source.m, source.n,
                     source.stored_type, name_of(source.order));
}

/// Takes a variant by its name, for this rank's part of the work.
void take_variant(const std::string& name, const Backend& backend, Plan& plan) {
  const std::span<const Variant> variants = backend.variants();
  const auto variant = std::find_if(variants.begin(), variants.end(),
                                    [&](const Variant& each) { return each.name == name; });
  if (variant == variants.end())
    throw DeviceError(
        fmt::format("rank 0 computes with {}, which is not there on every rank", name));
  plan.variant = &*variant;
  plan.params = variant->tune(plan.problem, backend.limits());
}

}  // namespace

std::string text_of_root(Comm& comm, std::string text) {
  std::uint64_t bytes = text.size();
  broadcast(comm, &bytes, 1);
  text.resize(bytes);
  broadcast(comm, text.data(), bytes);
  return text;
}

void agree_on_options(Comm& comm, const std::vector<GivenOption>& options) {
  const std::string mine = text_of(options), roots = text_of_root(comm, mine);
  together(comm, [&] {
    if (mine == roots) return;
    std::string here, there;
    if (const auto mine_first = first_difference(lines_of(mine), lines_of(roots)))
      std::tie(here, there) = *mine_first;
    else if (const auto roots_first = first_difference(lines_of(roots), lines_of(mine)))
      std::tie(there, here) = *roots_first;
    throw UsageError(fmt::format("rank 0 was given {}, rank {} {}", there, comm.rank(), here),
                     "give every rank the same options");
  });
}

void agree_on_source(Comm& comm, const Reader& input, const std::string& path) {
  const Source& source = input.source();
  std::string shape, part;
  std::uint64_t hash = 0;
  together(comm, [&] {
    shape = shape_in_words(source);
    part = source.dataset + path.substr(std::min(path.size(), source.file.size()));
    for (const auto& [name, word] : source.details) part += fmt::format(" {}={}", name, word);
    hash = content_hash(source.file);
  });
  const std::string root_shape = text_of_root(comm, shape), root_part = text_of_root(comm, part);
  std::uint64_t root_hash = hash;
  broadcast(comm, &root_hash, 1);
  together(comm, [&] {
    if (shape == root_shape && part == root_part && hash == root_hash) return;
    const std::string what =
        shape != root_shape
            ? fmt::format("rank 0 reads {}, rank {} {}", root_shape, comm.rank(), shape)
        : part != root_part
            ? fmt::format("rank 0 reads {}, rank {} {}", escape(root_part), comm.rank(),
                          escape(part))
            : fmt::format("rank {} reads another file than rank 0, of the same shape", comm.rank());
    throw InputError(fmt::format("{}: {}", escape(source.file), what),
                     "give every rank the same file; copies must be equal byte by byte");
  });
}

void agree_on_backend(Comm& comm, const Backend& backend) {
  const std::string name = text_of_root(comm, backend.name());
  together(comm, [&] {
    if (backend.name() == name) return;
    throw DeviceError(
        fmt::format("rank 0 would compute on {}, rank {} on {}", name, comm.rank(), backend.name()),
        "give every rank a device; or --backend cpu");
  });
}

void agree_on_plan(Comm& comm, const Backend& backend, Plan& plan) {
  std::array<index_t, 5> numbers{plan.chunk_matrices, plan.chunk_rows, plan.buffers, plan.threads,
                                 plan.threads_per_matrix};
  broadcast(comm, numbers.data(), numbers.size());
  plan.chunk_matrices = numbers[0];
  plan.chunk_rows = numbers[1];
  plan.buffers = static_cast<int>(numbers[2]);
  plan.threads = static_cast<int>(numbers[3]);
  plan.threads_per_matrix = static_cast<int>(numbers[4]);
  const std::string variant = text_of_root(comm, std::string(plan.variant->name));
  together(comm, [&] {
    if (variant != plan.variant->name) take_variant(variant, backend, plan);
  });
  const std::string params = text_of_root(comm, text_of(plan.params));
  together(comm, [&] {
    if (params == text_of(plan.params)) return;
    throw DeviceError(fmt::format("rank 0 would run {} with the parameters {}, rank {} with {}",
                                  variant, params, comm.rank(), text_of(plan.params)),
                      "give every rank an equal device; or --backend cpu");
  });
}

}  // namespace qrtool
