// SPDX-License-Identifier: Apache-2.0
// agreement.cpp: compares what the ranks have with what rank 0 has.
#include "app/ranks/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "app/run/join.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

struct NamedValue {
  std::string name, value;
};

/// The options that decide the result. Where nothing was given, the value is empty.
std::vector<NamedValue> deciding_options(const FactorOptions& o) {
  std::string precision;
  if (o.precision.is_mixed) {
    precision = "mixed";
  } else if (o.precision.type) {
    precision = name_of(*o.precision.type);
  }
  std::string csv;
  for (const auto& [name, word] : to_text(o.csv)) csv += fmt::format("{}={} ", name, word);
  return {{"--mode", std::string(name_of(o.mode))},
          {"--sign", o.sign ? std::string(name_of(*o.sign)) : ""},
          {"--precision", precision},
          {"--arithmetic", std::string(name_of(o.arithmetic))},
          {"--order", std::string(name_of(o.order))},
          {"--pivot", o.pivot ? "yes" : ""},
          {"--condition", o.condition ? "yes" : ""},
          {"--dataset", o.dataset},
          {"options of CSV", csv}};
}

std::string text_of(const Params& params) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : params) parts.push_back(fmt::format("{}={}", name, value));
  return parts.empty() ? "none" : join(parts, " ");
}

std::string in_words(const NamedValue& option, const std::string& value) {
  return value.empty() ? "no " + option.name : option.name + " " + escape(value);
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

void agree_on_options(Comm& comm, const FactorOptions& options) {
  for (const NamedValue& option : deciding_options(options)) {
    const std::string value = text_of_root(comm, option.value);
    together(comm, [&] {
      if (option.value == value) return;
      throw UsageError(fmt::format("rank 0 was given {}, rank {} {}", in_words(option, value),
                                   comm.rank(), in_words(option, option.value)),
                       "give every rank the same options");
    });
  }
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
