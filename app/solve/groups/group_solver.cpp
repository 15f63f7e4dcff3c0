// SPDX-License-Identifier: Apache-2.0
// group_solver.cpp: sorts the groups of a window by their sizes, and solves them.
#include "app/solve/groups/group_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "app/engine/solve_plan.hpp"
#include "app/solve/solve_stages.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/parallel.hpp"
#include "core/solve/engines/pack_solver.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {
namespace {

/// Whether a group is small is decided from its shape alone, as if there were this many groups of
/// that shape.
constexpr index_t groups_of_a_class = 64;
/// The most entries of a small system with fewer rows than columns, as for packs.
constexpr index_t most_wide_entries = 32768;
/// The numbers of a task stay in a second-level cache; few groups are more than a pack.
constexpr index_t numbers_of_task = index_t{1} << 16, least_groups = 16;

/// A reader of the columns `places` of a group's rows, preceded by a column of ones if has_ones.
class ColumnsOfGroup final : public ReaderOf<ColumnsOfGroup> {
 public:
  ColumnsOfGroup(const std::string& file, const GroupRows& rows, std::vector<index_t> places,
                 bool has_ones)
      : rows_(rows), places_(std::move(places)), has_ones_(has_ones) {
    source_.file = file;
    source_.m = rows.count();
    source_.n = std::ssize(places_) + (has_ones ? 1 : 0);
  }
  template <class T>
  void read_any_rows(index_t, index_t first, MatrixView<T> out) const {
    index_t i = 0;
    rows_.visit(first, out.rows, [&](const double* numbers) {
      T* to = &out(i++, 0);
      if (has_ones_) *to++ = T(1);
      for (const index_t place : places_) *to++ = static_cast<T>(numbers[place]);
    });
  }
  void require_unchanged() const override {}

 private:
  const GroupRows& rows_;
  std::vector<index_t> places_;
  bool has_ones_;
};

}  // namespace

const GroupSolver::SizeClass& GroupSolver::class_of(index_t rows) {
  const auto found = classes_.find(rows);
  if (found != classes_.end()) return found->second;
  SizeClass& of = classes_[rows];
  of.problem = system_.problem_of(rows);
  const SolveProblem& p = of.problem;
  const bool goes_in_packs = pays_as_pack(p, groups_of_a_class, 1);
  of.is_small =
      goes_in_packs || (p.packed_rows() < p.n && p.packed_rows() * (p.n + 1) <= most_wide_entries);
  if (!of.is_small) return of;
  Limits limits = limits_;
  limits.threads = 1;
  of.plan = plan_factor(p, goes_in_packs ? groups_of_a_class : 1, 1, limits, {});
  return of;
}

/// Returns the groups to be solved, sorted by size. Groups with too few rows are left out, and
/// their answers are set.
std::vector<GroupSolver::Item> GroupSolver::items_of(std::span<const GroupRows> groups,
                                                     GroupAnswers& answers) const {
  std::vector<Item> items;
  const index_t responses = system_.count_responses();
  for (index_t place = 0; place < std::ssize(answers.lines); ++place) {
    const GroupRows& rows = groups[static_cast<std::size_t>(place / responses)];
    index_t count = 0;
    rows.visit(0, rows.count(),
               [&](const double* numbers) { count += system_.counts(numbers, place % responses); });
    GroupLine& line = answers.lines[static_cast<std::size_t>(place)];
    line.rows = count;
    const SolveProblem p = system_.problem_of(count);
    const bool has_few =
        count == 0 || count < p.least_rows() || (count < p.n && p.ridge == 0 && !p.takes_few_rows);
    for (Batch<double>* numbers : {&answers.x, &answers.se})
      std::fill_n(&numbers->view()[0](place, 0), system_.terms(), not_measured);
    if (has_few) {
      line.report.status = Status::too_few_rows;
    } else {
      items.push_back({count, place});
    }
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& one, const Item& other) { return one.rows < other.rows; });
  return items;
}

GroupAnswers GroupSolver::solve(std::span<const GroupRows> groups, const Limits& limits) {
  limits_ = limits;
  GroupAnswers answers(std::ssize(groups) * system_.count_responses(), system_.terms());
  const std::vector<Item> items = items_of(groups, answers);
  std::vector<Task> tasks;
  std::vector<Item> large;
  std::size_t workspace = 1;
  for (std::size_t first = 0; first < items.size();) {
    const index_t m = items[first].rows;
    const SizeClass& of = class_of(m);
    const index_t numbers = of.problem.packed_rows() * (system_.terms() + 2);
    const auto most = static_cast<std::size_t>(std::max(least_groups, numbers_of_task / numbers));
    std::size_t end = first + 1;
    while (end < items.size() && items[end].rows == m && end - first < most) ++end;
    if (of.is_small) {
      tasks.push_back({&of, std::span(items).subspan(first, end - first)});
      const auto of_task = static_cast<std::size_t>(numbers) * (end - first) * sizeof(double);
      workspace = std::max(workspace, of_task + PackSolver<double>::workspace_bytes(of.problem, 1));
    } else {
      large.insert(large.end(), items.begin() + static_cast<std::ptrdiff_t>(first),
                   items.begin() + static_cast<std::ptrdiff_t>(end));
    }
    first = end;
  }
  const auto in_memory =
      static_cast<int>(std::clamp<std::size_t>(limits_.host_bytes / workspace, 1, INT_MAX));
  parallel_for(std::ssize(tasks), std::min(limits_.threads, in_memory), [&](index_t i, int) {
    solve_task(tasks[static_cast<std::size_t>(i)], groups, answers);
  });
  for (const Item& item : large) solve_alone(item, rows_of(item, groups), answers);
  return answers;
}

/// Copies the rows that count together, and solves.
void GroupSolver::solve_task(const Task& task, std::span<const GroupRows> groups,
                             GroupAnswers& answers) const {
  const SolveProblem& p = task.of->problem;
  const index_t count = std::ssize(task.items), m = p.m, n = p.n;
  const Batch<double> a(count, m, n), b(count, m, 1), x(count, 1, n), se(count, 1, n);
  const Batch<double> w(system_.weights < 0 ? 0 : count, m, 1);
  std::vector<SolutionReport> reports(task.items.size());
  std::vector<MatrixFindings> findings(task.items.size());
  std::vector<SystemRef<double>> systems;
  for (index_t s = 0; s < count; ++s) {
    const Item& item = task.items[static_cast<std::size_t>(s)];
    const index_t response = response_of(item);
    const index_t place = system_.responses[static_cast<std::size_t>(response)];
    double *to_a = a.view()[s].data, *to_b = b.view()[s].data, *to_w = w.view()[s].data;
    const GroupRows& rows = rows_of(item, groups);
    rows.visit(0, rows.count(), [&](const double* numbers) {
      if (!system_.counts(numbers, response)) return;
      if (p.has_intercept) *to_a++ = 1;
      for (const index_t other : system_.others) *to_a++ = numbers[other];
      *to_b++ = numbers[place];
      if (system_.weights >= 0) *to_w++ = numbers[system_.weights];
    });
    systems.push_back({a.view()[s].data, s});
  }
  Limits limits = limits_;
  limits.threads = 1;
  CpuBackend cpu(limits);
  SystemEngine<double> engine(p, cpu, task.of->plan, 1);
  engine.run(systems, {.count = count,
                       .b = b.view().data,
                       .b_places = VectorPlaces::rows(m),
                       .w = system_.weights < 0 ? nullptr : w.view().data,
                       .w_places = VectorPlaces::rows(m),
                       .x = x.view().data,
                       .se = p.wants_se ? se.view().data : nullptr,
                       .x_places = VectorPlaces::rows(n),
                       .reports = reports,
                       .findings = findings});
  for (index_t s = 0; s < count; ++s) {
    const auto i = static_cast<std::size_t>(s);
    const Item& item = task.items[i];
    GroupLine& line = answers.lines[static_cast<std::size_t>(item.place)];
    line.report = reports[i];
    line.findings = findings[i];
    find_r_squared(system_, rows_of(item, groups), response_of(item), line);
    std::copy_n(x.view()[s].data, n, &answers.x.view()[0](item.place, 0));
    if (p.wants_se) std::copy_n(se.view()[s].data, n, &answers.se.view()[0](item.place, 0));
  }
}

/// Solves one group as if its rows were a table, by the route that its shape decides.
void GroupSolver::solve_alone(const Item& item, const GroupRows& rows,
                              GroupAnswers& answers) const {
  SolveProblem p = system_.problem_of(rows.count());
  // All rows are passed on, including those that do not count for this response.
  p.skips_missing = system_.skips_missing;
  const index_t response = system_.responses[static_cast<std::size_t>(response_of(item))];
  SolveInputs inputs;
  inputs.a = std::make_unique<ColumnsOfGroup>(system_.file, rows, system_.others, p.has_intercept);
  inputs.b = std::make_unique<ColumnsOfGroup>(system_.file, rows, std::vector{response}, false);
  if (system_.weights >= 0)
    inputs.w =
        std::make_unique<ColumnsOfGroup>(system_.file, rows, std::vector{system_.weights}, false);
  inputs.sides =
      readings({.a_leading = {}, .m = p.m, .n = p.n, .b_dims = {p.m, 1}}, RowsOfB::matrix).front();
  const SolvePlan plan = plan_solve(inputs.shape(), p, limits_);
  GroupLine& line = answers.lines[static_cast<std::size_t>(item.place)];
  const SolveSink<double> sink{
      .keep_x =
          [&](index_t, index_t, const double* x, const double* se) {
            std::copy_n(x, p.n, &answers.x.view()[0](item.place, 0));
            if (se != nullptr) std::copy_n(se, p.n, &answers.se.view()[0](item.place, 0));
          },
      .keep_reports = [&](index_t, auto reports) { line.report = reports.front(); },
      .keep_findings = [&](index_t, auto findings) { line.findings = findings.front(); },
      .keep_covariance = [](index_t, index_t, const double*) {}};
  run_solve_stages<double>(
      {.inputs = inputs, .problem = p, .plan = plan, .limits = limits_, .device = nullptr}, sink);
  find_r_squared(system_, rows, response_of(item), line);
}

}  // namespace qrtool
