// SPDX-License-Identifier: Apache-2.0
// make_backend.cpp: the list of backends.
#include "app/make_backend.hpp"

#include <fmt/format.h>

#include "app/host.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// The backend that a variant's name begins with; empty without a variant.
std::string backend_of(const std::string& variant) {
  if (variant.empty()) return {};
  const std::size_t slash = variant.find('/');
  if (slash == std::string::npos)
    throw UsageError(fmt::format("--variant: '{}' is not BACKEND/NAME", escape(variant)),
                     "the reference is cpu/eigen");
  return variant.substr(0, slash);
}

}  // namespace

Limits host_limits(std::optional<std::uint64_t> memory_bytes, int threads) {
  Limits limits;
  limits.host_bytes = memory_bytes.value_or(free_memory_bytes() / 2);
  limits.threads = threads > 0 ? threads : available_cores();
  return limits;
}

std::unique_ptr<Backend> make_backend(const std::string& name, const std::string& variant,
                                      const Limits& limits) {
  const std::string implied = backend_of(variant);
  if (!implied.empty() && name != "auto" && name != implied)
    throw UsageError(fmt::format("--backend {} contradicts --variant {}", name, escape(variant)),
                     "leave --backend away");
  const std::string chosen = implied.empty() ? name : implied;
  if (chosen == "cpu" || chosen == "auto") return std::make_unique<CpuBackend>(limits);
  throw UsageError(
      fmt::format("--variant: '{}' names an unknown backend; allowed is cpu", escape(variant)));
}

}  // namespace qrtool
