// SPDX-License-Identifier: Apache-2.0
// kernel_cases.cpp: the shapes lie at the borders of kernels (tests/gpu/variants_test.cpp), and the
// matrices are of every kind, so that guards pass and refuse, and flags are set.
#include "tests/gpu/kernel_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <span>

#include "core/matrix/matrices.hpp"
#include "core/plan/plan.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "gpu/host/driver.hpp"
#include "gpu/pipeline/stream_engine.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/resident/resident_systems.hpp"
#include "gpu/solve/shared/shared_systems.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/factored_batch.hpp"
#include "tests/support/uneven_systems.hpp"

namespace qrtool::test {
namespace {

struct CaseShape {
  index_t m, n;
  bool operator==(const CaseShape&) const = default;
};

/// Every NaN has the same bits: which of its operands' NaN an instruction gives is left to the
/// driver.
template <class T>
void append(std::string& bytes, const T* data, std::size_t count) {
  for (std::size_t i = 0; i < count * static_cast<std::size_t>(parts_of<T>); ++i) {
    Real<T> number = reinterpret_cast<const Real<T>*>(data)[i];
    if (std::isnan(number)) number = std::numeric_limits<Real<T>>::quiet_NaN();
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
}
template <class T>
void append(std::string& bytes, const std::vector<T>& list) {
  append(bytes, list.data(), list.size());
}
template <class T>
void append(std::string& bytes, const Batch<T>& batch) {
  const BatchView<T> view = batch.view();
  append(bytes, view.data, static_cast<std::size_t>(view.count * view.rows * view.cols));
}
void append_number(std::string& bytes, double number) { append(bytes, &number, 1); }

// ---- factors

/// At least `least` matrices, of every kind in turn and with a NaN.
template <class T>
Batch<T> all_kinds(index_t m, index_t n, index_t least) {
  constexpr bool is_complex = parts_of<T> == 2;
  const auto name = [](index_t kind) {
    const auto at = static_cast<std::size_t>(kind);
    if constexpr (is_complex)
      return complex_kinds()[at];
    else
      return matrix_kinds()[at].name;
  };
  const index_t kinds = is_complex ? std::ssize(complex_kinds()) : std::ssize(matrix_kinds());
  Batch<T> batch(std::max(least, kinds + 1), m, n);
  std::mt19937_64 generator(5);
  for (index_t b = 0; b < batch.view().count; ++b) {
    const MatrixView<T> a = batch.view()[b];
    const index_t kind = b % (kinds + 1);
    const auto of = name(kind % kinds);
    if constexpr (is_complex)
      fill_complex<Real<T>>(of, generator, a);
    else
      fill_matrix<T>({.kind = of}, b, a);
    if (kind == kinds) a(m / 2, n / 2) = std::numeric_limits<Real<T>>::quiet_NaN();
  }
  return batch;
}

void append_report(std::string& bytes, const MatrixReport& line) {
  for (const double number : {line.residual, line.orthogonality, line.lower, line.diagonal_ratio})
    append_number(bytes, number);
  for (const int number :
       {static_cast<int>(line.status), static_cast<int>(line.route), int{line.scale}})
    append_number(bytes, number);
}

template <class T>
std::string factored(OpenclBackend& backend, Problem problem, std::string_view variant) {
  const Batch<T> a = all_kinds<T>(problem.m, problem.n, problem.count);
  problem.count = a.view().count;
  const Plan plan = make_plan(problem, backend.variants(), backend.limits(), variant);
  FactoredBatch<T> out(problem);
  backend.factor<T>(plan, BatchView<const T>(a.view()), out.factors(), out.report);
  std::string bytes;
  for (const Batch<T>* batch : {&out.q, &out.r, &out.v, &out.tau}) append(bytes, *batch);
  for (const MatrixReport& line : out.report) append_report(bytes, line);
  return bytes;
}

/// A way to factor, of which a variant takes some.
struct Way {
  ElementType type;
  Mode mode;
  Sign sign;
  Arithmetic arithmetic = Arithmetic::any;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const ElementType type : element_types)
    for (const Mode mode : {Mode::reduced, Mode::r, Mode::complete, Mode::raw})
      for (const Sign sign : {Sign::positive, Sign::lapack})
        if (mode != Mode::raw || sign == Sign::positive) ways.push_back({type, mode, sign});
  for (const Arithmetic arithmetic : {Arithmetic::strict, Arithmetic::mixed})
    ways.push_back({ElementType::float32, Mode::reduced, Sign::positive, arithmetic});
  return ways;
}

constexpr CaseShape factor_shapes[] = {{8, 8},     {33, 33},   {40, 12},  {70, 65},   {9, 14},
                                       {20, 100},  {16, 64},   {600, 17}, {128, 128}, {1100, 70},
                                       {210, 200}, {4100, 3},  {1, 1},    {2100, 66}, {300, 160},
                                       {49, 40},   {1023, 33}, {3, 21}};

/// So many matrices that kernels go by matrices, not by parts of them, and the shapes of which
/// there are so many.
constexpr index_t many = 140;
constexpr CaseShape shapes_of_many[] = {{40, 12}, {70, 65}, {128, 128}, {210, 200}};

/// Of these Q of m x m is not too large.
constexpr index_t most_rows_of_complete = 300;

KernelCase case_of(const GpuVariant& variant, const Problem& p) {
  std::string name = fmt::format("{} {}x{} {} {} {}", variant.plan.name, p.m, p.n, name_of(p.type),
                                 name_of(p.mode), name_of(p.sign));
  if (p.arithmetic != Arithmetic::any) name += fmt::format(" {}", name_of(p.arithmetic));
  if (p.count > 0) name += fmt::format(" {} matrices", p.count);
  return {name, [p, of = variant.plan.name](OpenclBackend& backend) {
            return with_type(p.type,
                             [&](auto zero) { return factored<decltype(zero)>(backend, p, of); });
          }};
}

/// Every way that the variant takes by its first shape, each further shape by one way for either
/// precision, and many matrices of some shapes.
void add_variant(const GpuVariant& variant, const Limits& limits, std::vector<KernelCase>& cases) {
  const std::vector<Way> ways = all_ways();
  std::set<std::size_t> done;
  std::size_t turn = 0;
  for (const CaseShape& shape : factor_shapes) {
    const auto problem = [&](std::size_t way, index_t count) -> Problem {
      const auto& [type, mode, sign, arithmetic] = ways[way];
      return {count, shape.m, shape.n, type, mode, sign, arithmetic};
    };
    std::vector<std::size_t> taken, chosen;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const bool is_large = ways[i].mode == Mode::complete && shape.m > most_rows_of_complete;
      if (is_large || !variant.plan.takes(problem(i, 30), limits).ok) continue;
      taken.push_back(i);
      if (done.insert(i).second) chosen.push_back(i);
    }
    if (taken.empty()) continue;
    const bool is_first = done.size() == chosen.size();
    if (chosen.empty()) {
      for (const ElementType real : {ElementType::float32, ElementType::float64}) {
        std::vector<std::size_t> of_type;
        std::ranges::copy_if(taken, std::back_inserter(of_type),
                             [&](std::size_t way) { return real_of(ways[way].type) == real; });
        if (!of_type.empty()) chosen.push_back(of_type[turn++ % of_type.size()]);
      }
    }
    for (const std::size_t i : chosen) {
      cases.push_back(case_of(variant, problem(i, 0)));
      cases.back().is_first = is_first && i == chosen.front();
    }
    const bool is_of_many = std::ranges::count(shapes_of_many, shape) > 0;
    if (is_of_many) cases.push_back(case_of(variant, problem(taken.front(), many)));
  }
}

// ---- arrays of a caller

/// Device memory of a caller with matrices, whose rows and columns may be apart.
template <class T>
class Arrays {
 public:
  Arrays(const CallerArrays& device, index_t count, index_t rows, index_t cols, bool is_apart)
      : device_(device) {
    if (count * rows * cols == 0) return;
    const index_t step = is_apart ? 2 : 1, ld = step * cols + (is_apart ? 3 : 0);
    // memcheck counts 16 bytes of a copy that ends with the matrices.
    const auto bytes = (sizeof(T) * static_cast<std::size_t>(count * rows * ld) + 15) / 16 * 16;
    matrices_ = {device.allocate_on(nullptr, bytes), count, rows, cols, ld, step, rows * ld};
  }
  ~Arrays() {
    if (matrices_.data != nullptr) device_.free_when_idle(matrices_.data);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  const DeviceMatrices& operator*() const { return matrices_; }
  void read(StreamEngine& engine, Batch<T>& to) const {
    if (matrices_.data != nullptr) engine.read(nullptr, element_type<T>, matrices_, to.view().data);
  }

 private:
  const CallerArrays& device_;
  DeviceMatrices matrices_;
};

/// Factors of matrices in device memory; in host memory where the device has no arrays of a caller.
template <class T>
std::string factored_where_it_is(OpenclBackend& backend, Problem problem, bool is_apart) {
  const Batch<T> a = all_kinds<T>(problem.m, problem.n, problem.count);
  problem.count = a.view().count;
  FactoredBatch<T> out(problem);
  const CallerArrays* const device = caller_arrays_of(backend);
  if (device == nullptr) {
    const Plan plan = make_plan(problem, backend.variants(), backend.limits());
    backend.factor<T>(plan, BatchView<const T>(a.view()), out.factors(), out.report);
  } else {
    const auto engine = make_stream_engine(backend, {});
    const auto like = [&](const Batch<T>& of) {
      const BatchView<T> view = of.view();
      return std::make_unique<Arrays<T>>(*device, view.count, view.rows, view.cols, is_apart);
    };
    const auto of_a = like(a), q = like(out.q), r = like(out.r), v = like(out.v),
               tau = like(out.tau);
    engine->write(nullptr, problem.type, a.view().data, **of_a);
    const Arrays<float> statuses(*device, problem.count, 1, 1, /*is_apart=*/false);
    FactorArrays arrays{**of_a, **q, **r, **v, **tau, static_cast<std::int32_t*>((*statuses).data)};
    engine->factor(nullptr, problem, arrays, Looks::at_range);
    arrays.statuses = nullptr;
    for (const Looks looks : {Looks::at_nothing, Looks::at_range, Looks::at_errors}) {
      engine->factor(nullptr, problem, arrays, looks);
      engine->wait();
    }
    q->read(*engine, out.q);
    r->read(*engine, out.r);
    v->read(*engine, out.v);
    tau->read(*engine, out.tau);
    engine->measure(nullptr, problem, arrays);
  }
  std::string bytes;
  for (const Batch<T>* batch : {&out.q, &out.r, &out.v, &out.tau}) append(bytes, *batch);
  return bytes;
}

void add_arrays(std::vector<KernelCase>& cases) {
  bool is_first = true;
  for (const ElementType type : element_types)
    for (const Mode mode : {Mode::reduced, Mode::r, Mode::raw})
      for (const CaseShape& shape : {CaseShape{40, 12}, {33, 33}, {600, 17}})
        for (const bool is_apart : {true, false}) {
          const Problem problem{.m = shape.m, .n = shape.n, .type = type, .mode = mode};
          cases.push_back({fmt::format("arrays {}x{} {} {}{}", shape.m, shape.n, name_of(type),
                                       name_of(mode), is_apart ? " apart" : ""),
                           [problem, is_apart](OpenclBackend& backend) {
                             return with_type(problem.type, [&](auto zero) {
                               return factored_where_it_is<decltype(zero)>(backend, problem,
                                                                           is_apart);
                             });
                           },
                           is_first});
          is_first = false;
        }
}

// ---- systems

template <class T>
struct RunAnswer {
  RunAnswer(index_t sides, index_t n)
      : x(static_cast<std::size_t>(sides * n), T(-12345.5)),
        se(x.size(), T(-12345.5)),
        reports(static_cast<std::size_t>(sides)),
        findings(reports.size()) {}

  std::string bytes() const {
    std::string all;
    append(all, x);
    append(all, se);
    append(all, refused);
    for (const SolutionReport& report : reports)
      for (const double number :
           {report.residual_norm, report.backward_error, report.least_norm_error, report.freedom})
        append_number(all, number);
    for (const MatrixFindings& found : findings)
      for (const double number :
           {static_cast<double>(found.rank), found.condition, found.scaled_condition})
        append_number(all, number);
    return all;
  }

  std::vector<T> x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
  std::vector<index_t> refused;
};

Plan plan_of_r(OpenclBackend& backend, const SolveProblem& p) {
  return make_plan({.count = 100,
                    .m = std::max(p.packed_rows(), p.n),
                    .n = p.k(),
                    .type = p.type,
                    .mode = Mode::r},
                   backend.variants(), backend.limits());
}

template <class T>
SolveProblem system_problem(const CaseShape& shape) {
  return {.type = element_type<T>,
          .m = shape.m,
          .n = shape.n,
          .rank = {.tolerance = default_rank_tolerance(element_type<T>, shape.n)},
          .wants_se = shape.m > shape.n,
          .takes_few_rows = true};
}

constexpr CaseShape body_shapes[] = {{1, 1},     {16, 3},     {30, 9},    {64, 33},
                                     {81, 79},   {121, 97},   {130, 128}, {4097, 3},
                                     {4200, 33}, {4130, 170}, {300, 12}};

/// Systems by one body of normal equations, or by R of a variant.
template <class T>
std::string by_body(OpenclBackend& backend, const CaseShape& shape, SystemRoute route,
                    std::string_view body) {
  const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 26);
  SolveProblem problem = system_problem<T>(shape);
  problem.takes_few_rows = false;
  const Plan plan =
      make_plan({.count = s.count, .m = s.m, .n = s.n, .type = problem.type, .mode = Mode::r},
                backend.variants(), backend.limits());
  ResidentSystems<T> systems(backend, problem, plan, packed(s.a.data(), s.count, s.m, s.n),
                             std::span<const T>(s.b), route, body);
  systems.run();
  std::string bytes;
  append(bytes, systems.solutions());
  for (const SolutionErrors& of_side : systems.errors())
    for (const double number : {of_side.residual_norm, of_side.error}) append_number(bytes, number);
  return bytes;
}

template <class T>
void add_bodies(const Limits& limits, std::vector<KernelCase>& cases) {
  for (const SystemBody& body : normal_bodies()) {
    bool is_first = true;
    for (const CaseShape& shape : body_shapes) {
      SolveProblem problem = system_problem<T>(shape);
      problem.takes_few_rows = false;
      if (!body.fits(problem, limits)) continue;
      cases.push_back(
          {fmt::format("{} {}x{} {}", name_in_costs(body), shape.m, shape.n, name_of(problem.type)),
           [shape, name = body.name](OpenclBackend& backend) {
             return by_body<T>(backend, shape, SystemRoute::normal_equations, name);
           },
           is_first && sizeof(T) == 4});
      is_first = false;
    }
  }
  for (const CaseShape& shape : body_shapes)
    cases.push_back(
        {fmt::format("solve/factors {}x{} {}", shape.m, shape.n, name_of(element_type<T>)),
         [shape](OpenclBackend& backend) {
           return by_body<T>(backend, shape, SystemRoute::factors, {});
         }});
}

/// Hard systems with weights, gaps or a ridge.
template <class T>
std::string uneven(OpenclBackend& backend, const CaseShape& shape, const RowRule& rule,
                   SystemRoute route) {
  const HardSystems<T> hard = make_hard_systems<T>(shape.m, shape.n, 1, 4);
  const UnevenSystems<T> s = make_uneven_systems(hard, rule, 1);
  const SolveProblem problem = s.problem();
  const Plan plan = plan_of_r(backend, problem);
  RunAnswer<T> answer(hard.count, hard.n);
  answer.refused = make_system_device<T>(backend, problem, plan, route)
                       ->run(packed(s.systems.a.data(), hard.count, hard.m, hard.n),
                             s.block(answer.x, answer.reports, answer.findings));
  return answer.bytes();
}

constexpr CaseShape uneven_shapes[] = {{30, 4}, {5, 12}, {70, 33}, {16, 16}, {4200, 4}, {33, 70}};

template <class T>
void add_uneven(std::vector<KernelCase>& cases) {
  int turn = 0;
  for (const CaseShape& shape : uneven_shapes)
    for (RowRule rule : row_rules)
      for (const SystemRoute route : {SystemRoute::normal_equations, SystemRoute::factors}) {
        rule.ridge = ++turn % 3 == 0 ? 0.25 : 0;
        cases.push_back({fmt::format("systems {}x{} {} {} ridge {} {}", shape.m, shape.n,
                                     name_of(element_type<T>), name_of(rule), rule.ridge,
                                     name_of(route, "factors")),
                         [shape, rule, route](OpenclBackend& backend) {
                           return uneven<T>(backend, shape, rule, route);
                         },
                         turn == 3 && sizeof(T) == 4});
      }
}

/// Right sides of one A, each with weights and gaps of its own.
struct Sides {
  index_t m, n, count;
  bool has_weights, has_gaps;
  double ridge = 0;
};

template <class T>
struct SideData {
  explicit SideData(const Sides& s, bool weighs_each) {
    std::mt19937_64 random(27);
    std::normal_distribution<double> normal;
    for (index_t e = 0; e < s.m * s.n; ++e) a.push_back(static_cast<T>(normal(random)));
    for (index_t e = 0; e < s.count * s.m; ++e) b.push_back(static_cast<T>(normal(random)));
    for (index_t e = 0; s.has_weights && e < (weighs_each ? s.count : 1) * s.m; ++e)
      w.push_back(e % 7 == 3 ? T(0) : T(1) + T(e % 5) / 4);
    for (index_t v = 3; s.has_gaps && v < s.count; ++v)
      for (index_t i = v % 4; i < s.m; i += 5)
        b[static_cast<std::size_t>(v * s.m + i)] = std::numeric_limits<T>::quiet_NaN();
  }
  RightSideBlock<T> block(const Sides& s, const SolveProblem& problem, RunAnswer<T>& answer,
                          bool in_rows) const {
    const auto places = [&](index_t length) {
      return in_rows ? VectorPlaces::rows(length) : VectorPlaces::columns(length, s.count);
    };
    return {.count = s.count,
            .b = b.data(),
            .b_places = places(s.m),
            .w = w.empty() ? nullptr : w.data(),
            .w_places = problem.weighs_each ? VectorPlaces::rows(s.m) : VectorPlaces{1, 0, 0, 1},
            .x = answer.x.data(),
            .se = problem.wants_se ? answer.se.data() : nullptr,
            .x_places = places(s.n),
            .reports = answer.reports,
            .findings = answer.findings};
  }
  std::vector<T> a, b, w;
};

template <class T>
SolveProblem side_problem(const Sides& s) {
  SolveProblem problem = system_problem<T>({s.m, s.n});
  problem.ridge = s.ridge;
  problem.skips_missing = s.has_gaps;
  problem.wants_se = s.ridge == 0 && s.m > s.n;
  return problem;
}

/// One A that systems with weights of their own share.
template <class T>
std::string paired(OpenclBackend& backend, const Sides& s, SystemRoute route) {
  SolveProblem problem = side_problem<T>(s);
  problem.has_weights = problem.weighs_each = s.has_weights;
  const SideData<T> data(s, problem.weighs_each);
  RunAnswer<T> answer(s.count, s.n);
  const Plan plan = plan_of_r(backend, problem);
  answer.refused = make_system_device<T>(backend, problem, plan, route)
                       ->run(BatchView<const T>{data.a.data(), s.count, s.m, s.n, s.n, 0},
                             data.block(s, problem, answer, /*in_rows=*/true));
  return answer.bytes();
}

/// One A that was factored by the CPU.
template <class T>
std::string shared(OpenclBackend& backend, const Sides& s, SidesLayout layout) {
  const SolveProblem problem = side_problem<T>(s);
  const SideData<T> data(s, /*weighs_each=*/false);
  RunAnswer<T> answer(s.count, s.n);
  const Limits host{.host_bytes = std::size_t{1} << 30, .threads = 1};
  SharedEngine<T> engine(problem, host);
  const MatrixView<const T> a{data.a.data(), s.m, s.n, s.n};
  engine.take_matrix(a, data.w.empty() ? nullptr : data.w.data(), 1);
  const auto factors = engine.factors();
  if (!factors) return "not for products";
  answer.refused = make_shared_device<T>(backend, problem, a, *factors, layout)
                       ->run(data.block(s, problem, answer, layout == SidesLayout::rows));
  return answer.bytes();
}

/// Around the sizes of solve_weighed_group: 17 to 48 columns.
constexpr Sides paired_sides[] = {
    {30, 4, 9, true, true},   {40, 17, 9, true, true}, {70, 33, 9, true, false},
    {80, 48, 9, true, true},  {80, 49, 9, true, true}, {90, 64, 9, false, true},
    {150, 97, 9, true, true}, {41, 1, 9, true, true},  {70, 33, 9, true, true, 1}};
constexpr Sides shared_sides[] = {{30, 4, 300, false, false},     {30, 4, 300, true, true},
                                  {130, 33, 70, true, false},     {50, 20, 300, false, true},
                                  {64, 64, 200, false, false},    {600, 12, 300, false, true},
                                  {30, 4, 300, false, false, 0.5}};

template <class T>
void add_sides(std::vector<KernelCase>& cases) {
  const auto text = [](const Sides& s) {
    return fmt::format("{}x{} {}{}{}{}", s.m, s.n, name_of(element_type<T>),
                       s.has_weights ? " weights" : "", s.has_gaps ? " gaps" : "",
                       s.ridge > 0 ? " ridge" : "");
  };
  for (const Sides& s : paired_sides)
    for (const SystemRoute route : {SystemRoute::normal_equations, SystemRoute::factors})
      cases.push_back(
          {fmt::format("one A {} {}", text(s), name_of(route, "factors")),
           [s, route](OpenclBackend& backend) { return paired<T>(backend, s, route); },
           &s == &paired_sides[1] && route == SystemRoute::normal_equations && sizeof(T) == 4});
  for (const Sides& s : shared_sides)
    for (const SidesLayout layout : {SidesLayout::rows, SidesLayout::columns})
      cases.push_back(
          {fmt::format("shared {} {}", text(s), layout == SidesLayout::rows ? "rows" : "columns"),
           [s, layout](OpenclBackend& backend) { return shared<T>(backend, s, layout); },
           &s == &shared_sides[1] && layout == SidesLayout::rows && sizeof(T) == 4});
}

}  // namespace

std::vector<KernelCase> kernel_cases(OpenclBackend& backend) {
  const Limits limits = backend.limits();
  std::vector<KernelCase> cases;
  for (const GpuVariant& variant : gpu_variants()) add_variant(variant, limits, cases);
  add_arrays(cases);
  add_bodies<float>(limits, cases);
  add_bodies<double>(limits, cases);
  add_uneven<float>(cases);
  add_uneven<double>(cases);
  add_sides<float>(cases);
  add_sides<double>(cases);
  return cases;
}

}  // namespace qrtool::test
