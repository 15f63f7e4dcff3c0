// SPDX-License-Identifier: Apache-2.0
// generate.cpp: qrtool_generate: test matrices by their kind, a thread a matrix.
#include <algorithm>
#include <cmath>
#include <vector>

#include "app/capi/arrays.hpp"
#include "app/capi/context.hpp"
#include "app/capi/device_calls.hpp"
#include "core/machine/parallel.hpp"
#include "core/matrix/matrices.hpp"

namespace qrtool::capi {
namespace {

/// The entries that are filled before the caller is asked whether to go on.
constexpr index_t entries_at_once = index_t{1} << 22;

/// Errors: UsageError if one of its kinds is unknown, also where there are fewer matrices.
MatrixRequest request_of(const char* kind, const qrtool_generate_options& o) {
  if (kind == nullptr) throw UsageError("qrtool_generate: kind is NULL");
  if (o.cond != 0 && !(o.cond >= 1 && std::isfinite(o.cond)))
    throw UsageError("cond must be a finite number of at least 1, or 0 for the usual one");
  MatrixRequest request{.kind = kind, .seed = o.seed};
  if (o.cond != 0) request.cond = o.cond;
  const index_t kinds = 1 + std::ranges::count(request.kind, '+');
  for (index_t b = 0; b < kinds; ++b) fill_matrix<double>(request, b, {});
  return request;
}

template <class T>
void fill(const qrtool_context& context, const MatrixRequest& request, const Strided<T>& to) {
  const int threads = context.limits.threads;
  const index_t at_once =
      std::max<index_t>(threads, entries_at_once / std::max<index_t>(to.rows * to.cols, 1));
  // Only what cannot be filled where it will lie needs memory of a thread.
  std::vector<Batch<T>> copies(static_cast<std::size_t>(threads));
  const auto fill_copy = [&](index_t b, Batch<T>& own) {
    if (own.view().count == 0) own = Batch<T>(1, to.rows, to.cols);
    const MatrixView<T> a = own.view()[0];
    fill_matrix<T>(request, b, a);
    for (index_t i = 0; i < to.rows; ++i)
      for (index_t j = 0; j < to.cols; ++j) to.at(b, i, j) = a(i, j);
  };
  for (index_t first = 0; first < to.count; first += at_once) {
    if (first > 0) context.require_going_on();
    parallel_for(std::min(at_once, to.count - first), threads, [&](index_t i, int worker) {
      if (to.is_by_rows())
        fill_matrix<T>(request, first + i, to.view()[first + i]);
      else
        fill_copy(first + i, copies[static_cast<std::size_t>(worker)]);
    });
  }
}

template <class T>
void generate(const qrtool_context& context, const MatrixRequest& request, const Strided<T>& to,
              void* stream) {
  const CallArray arrays[] = {call_array("out", to)};
  if (!arrays[0].has_entries && to.count * to.rows * to.cols > 0)
    throw UsageError("out: data is NULL");
  if (!context.are_on_device(arrays, {}, stream)) return fill(context, request, to);
  const DeviceCalls::Engine engine(context.device_calls());
  HostCopies copies(engine, stream);
  fill(context, request, copies.output(to));
  copies.write_back();
}

}  // namespace
}  // namespace qrtool::capi

using namespace qrtool;
using namespace qrtool::capi;

int qrtool_generate(qrtool_context* context, const char* kind, const qrtool_matrices* shape,
                    const qrtool_generate_options* options, const qrtool_place* out) {
  return on_context(context, [&](qrtool_context& c) {
    if (shape == nullptr || out == nullptr)
      throw UsageError("qrtool_generate: shape or out is NULL");
    require_valid_shape(*shape, "shape");
    const qrtool_generate_options o = taken(options, "qrtool_generate_options");
    const MatrixRequest request = request_of(kind, o);
    qrtool_context::note_work();
    with_type(type_of(*shape, "shape"), [&](auto zero) {
      using T = decltype(zero);
      generate<T>(c, request, place_for<T>(*out, "out", shape->count, shape->rows, shape->columns),
                  o.stream);
    });
    return static_cast<int>(QRTOOL_OK);
  });
}

const char* qrtool_kind_name(int number) {
  const auto kinds = matrix_kinds();
  const bool is_one = number >= 0 && number < std::ssize(kinds);
  return is_one ? kinds[static_cast<std::size_t>(number)].name.data() : "";
}
