// SPDX-License-Identifier: Apache-2.0
// every_kernel.cpp: qrtool_every_kernel, a program for a machine with a GPU. It launches the
// kernels of the device by CUDA's driver, for tools that watch kernels:
//
//     compute-sanitizer --tool racecheck qrtool_every_kernel --part 1/8
//
// With --compare it also launches them by OpenCL, and says where the bits differ. With --sums it
// prints a checksum of the bits of each case, so that two builds can be compared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/host/device.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "tests/gpu/kernel_cases.hpp"

namespace qrtool::test {
namespace {

struct Options {
  std::string device = "cuda:0", part = "1/1", filter;
  int seed = 0;
  bool lists = false, compares = false, sums = false, is_portable = false;
};

/// Whether case number `index` is one of the part "i/n".
bool is_in_part(std::size_t index, const std::string& part) {
  std::size_t number = 1, parts = 1;
  const std::size_t slash = part.find('/');
  std::from_chars(part.data(), part.data() + slash, number);
  std::from_chars(part.data() + slash + 1, part.data() + part.size(), parts);
  return index % parts == number - 1;
}

/// Where bits differ.
std::string difference(const std::string& bytes, const std::string& other) {
  if (bytes.size() != other.size()) return " in number";
  std::size_t count = 0, first = bytes.size(), last = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == other[i]) continue;
    first = std::min(first, i);
    last = i;
    ++count;
  }
  return fmt::format(" in {} of {} bytes, {} to {}", count, bytes.size(), first, last);
}

OpenclOptions backend_options(const Options& options) {
  OpenclOptions of_backend;
  of_backend.host.host_bytes = std::size_t{1} << 30;
  of_backend.portable = options.is_portable;
  return of_backend;
}

int run(const Options& options) {
  const DeviceInfo device = choose_device(options.device);
  DeviceInfo by_opencl = device;
  by_opencl.cuda_ordinal = -1;
  OpenclBackend backend(device, backend_options(options)),
      other(by_opencl, backend_options(options));
  std::size_t index = 0, done = 0, failed = 0;
  std::vector<KernelCase> cases = kernel_cases(backend);
  std::mt19937 generator(static_cast<unsigned>(options.seed));
  if (options.seed != 0) std::ranges::shuffle(cases, generator);
  for (const KernelCase& each : cases) {
    if (each.name.find(options.filter) == std::string::npos) continue;
    if (!is_in_part(index++, options.part)) continue;
    fmt::print("{}{}", each.name, options.sums ? "" : "\n");
    std::fflush(stdout);
    if (options.lists) continue;
    ++done;
    try {
      const std::string bytes = each.run(backend);
      if (options.sums) fmt::print(" {:016x}\n", std::hash<std::string>{}(bytes));
      if (!options.compares) continue;
      const std::string others = each.run(other);
      if (bytes == others) continue;
      fmt::print("  the bits differ{}\n{}", difference(bytes, others),
                 bytes == each.run(backend) ? "" : "  and from one run to the next\n");
    } catch (const Error& error) {
      fmt::print("  {}\n", error.what());
    }
    ++failed;
  }
  fmt::print("{} cases, {} failed\n", done, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  qrtool::test::Options options;
  CLI::App app("launches the kernels of a device");
  app.add_option("--device", options.device);
  app.add_option("--part", options.part, "i/n")->check([](const std::string& text) {
    return text.find('/') == std::string::npos ? "i/n is wanted" : "";
  });
  app.add_option("--filter", options.filter, "a part of the name of a case");
  app.add_option("--seed", options.seed, "shuffles the cases, unless it is 0");
  app.add_flag("--list", options.lists, "runs nothing");
  app.add_flag("--compare", options.compares, "with the bits by OpenCL");
  app.add_flag("--sums", options.sums, "a checksum of the bits of each case");
  app.add_flag("--portable", options.is_portable, "the bodies that run on any device");
  CLI11_PARSE(app, argc, argv);
  try {
    return qrtool::test::run(options);
  } catch (const qrtool::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
