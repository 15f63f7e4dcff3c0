// SPDX-License-Identifier: Apache-2.0
// attack.cpp: qrtool_attack, a program for a machine with a GPU. It factors any number of matrices
// of the attack families and judges each one by the report of its backend. The host also measures
// the worst matrix of each batch again. The tests run a small part of the same matrices.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/eigen/form_q.hpp"
#include "core/error.hpp"
#include "core/factor/second_try.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/report/ratios.hpp"
#include "core/text.hpp"
#include "gpu/host/device.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/registry.hpp"
#include "tests/support/attack.hpp"
#include "tests/support/condition.hpp"
#include "tests/support/judge.hpp"

namespace qrtool::test {
namespace {

constexpr std::size_t most_batch_bytes = std::size_t{512} << 20;  // of A; two batches are in memory
constexpr int most_failures_shown = 20;
constexpr index_t samples_of_r = 64;  // samples in each batch
/// Nearly all matrices with a condition below this should go by A'A.
double mild_condition(const std::string& precision) { return precision == "double" ? 1e5 : 1e4; }

struct Options {
  std::vector<std::string> variants{"plan"}, shapes, families;
  index_t matrices = 100, entries = index_t{1} << 26;
  std::uint64_t seed = 1;
  std::string mode = "reduced", sign = "positive", precision = "single";
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  bool unguarded = false, second_try = false, plain = false;
};

Mode mode_of(const Options& o) {
  return o.mode == "raw" ? Mode::raw : o.mode == "r" ? Mode::r : Mode::reduced;
}

/// R with its zeros or, in mode raw, with V below its diagonal.
template <class T>
BatchView<T> r_of(const Problem& p, const Factors<T>& out) {
  return p.mode == Mode::raw ? out.v : out.r;
}

/// The errors and routes of a set of matrices: a family, a shape, or all of them.
struct Tally : WorstErrors {
  RouteCounts routes;
  std::array<double, 5> by_route{};  // the worst error on each route, in bars
  // Matrices whose columns, scaled to norm 1, have a condition below mild_condition, and those of
  // them that finished by A'A.
  index_t mild = 0, mild_fast = 0;

  Tally() = default;
  Tally(const Problem& p, const MatrixReport& report) : WorstErrors(errors_in_bars(p, report)) {
    routes.include(report);
    by_route[static_cast<std::size_t>(report.route)] = worst();
  }
  void include(const Tally& other) {
    WorstErrors::include(other);
    routes += other.routes;
    for (std::size_t r = 0; r < by_route.size(); ++r)
      by_route[r] = std::max(by_route[r], other.by_route[r]);
    mild += other.mild;
    mild_fast += other.mild_fast;
  }
};

/// Keeps the rows of a table in the order in which they first occurred.
class Table {
 public:
  Tally& row(const std::string& name) {
    const auto [place, is_new] = tallies_.try_emplace(name);
    if (is_new) order_.push_back(name);
    return place->second;
  }
  Tally total() const {
    Tally sum;
    for (const auto& [name, tally] : tallies_) sum.include(tally);
    return sum;
  }
  void print(const std::string& title) const {
    fmt::print(
        "\n{:<22}{:>9}{:>8}{:>11}{:>11}{:>9}{:>10}{:>9}{:>10}{:>9}{:>10}{:>11}{:>10}{:>9}"
        "{:>9}{:>9}\n",
        title, "matrices", "above", "residual", "Q or R", "pass 1", "worst", "pass 2", "worst",
        "passes", "worst", "reflectors", "worst", "2nd try", "mild", "by A'A");
    for (const std::string& name : order_) print_row(name, tallies_.at(name));
    print_row("all", total());
  }

 private:
  static void print_row(const std::string& name, const Tally& t) {
    const auto worst = [&](Route route) { return t.by_route[static_cast<std::size_t>(route)]; };
    fmt::print(
        "{:<22}{:>9}{:>8}{:>11.3g}{:>11.3g}{:>9}{:>10.3g}{:>9}{:>10.3g}{:>9}{:>10.3g}{:>11}{:>10."
        "3g}"
        "{:>9}{:>9}{:>9}\n",
        name, t.matrices, t.above, t.residual, t.q_or_r, t.routes.first_pass,
        worst(Route::first_pass), t.routes.second_pass, worst(Route::second_pass),
        t.routes.further_passes, worst(Route::further_passes), t.routes.reflectors,
        worst(Route::reflectors), t.routes.second_try, t.mild, t.mild_fast);
  }

  std::map<std::string, Tally> tallies_;
  std::vector<std::string> order_;
};

/// Returns the families that the user asked for.
std::vector<AttackFamily> chosen_families(const std::vector<std::string>& names) {
  const std::span<const AttackFamily> all = attack_families();
  if (names.empty()) return {all.begin(), all.end()};
  std::vector<AttackFamily> chosen;
  for (const std::string& name : names) chosen.push_back(attack_family(name));
  return chosen;
}

std::vector<AttackShape> chosen_shapes(const std::vector<std::string>& names) {
  const std::span<const AttackShape> all = attack_shapes();
  if (names.empty()) return {all.begin(), all.end()};
  std::vector<AttackShape> chosen;
  for (const std::string& name : names) {
    if (name == "few-rows") {
      chosen.insert(chosen.end(), shapes_of_few_rows().begin(), shapes_of_few_rows().end());
      continue;
    }
    int m = 0, n = 0, read = 0;
    const bool is_shape = std::sscanf(name.c_str(), "%dx%d%n", &m, &n, &read) == 2;
    if (!is_shape || static_cast<std::size_t>(read) != name.size() || m < 1 || n < 1)
      throw UsageError("'" + name + "' is no shape such as 64x48");
    chosen.push_back({m, n});
  }
  return chosen;
}

OpenclOptions host_options(int threads) {
  OpenclOptions options;
  options.host.host_bytes = std::size_t{16} << 30;
  options.host.threads = threads;
  return options;
}

/// Makes each backend when a variant first needs it.
class Backends {
 public:
  explicit Backends(int threads) : options_(host_options(threads)) {}

  Backend& of(const std::string& variant) {
    if (variant.starts_with("cpu")) {
      if (!cpu_) cpu_.emplace(options_.host);
      return *cpu_;
    }
    if (!opencl_) {
      const char* wanted = std::getenv("QRTOOL_TEST_DEVICE");
      opencl_.emplace(choose_device(wanted == nullptr ? "" : wanted), options_);
    }
    return *opencl_;
  }

 private:
  OpenclOptions options_;
  std::optional<CpuBackend> cpu_;
  std::optional<OpenclBackend> opencl_;
};

/// Runs one variant and collects the results of its matrices.
class Attack {
 public:
  Attack(const Options& options, Backends& backends)
      : o_(options),
        backends_(backends),
        families_(chosen_families(options.families)),
        shapes_(chosen_shapes(options.shapes)) {}

  /// Runs a variant of a backend's list. If the name is empty, the OpenCL backend's plan chooses;
  /// "cpu" is the choice of the CPU's plan for each matrix alone.
  template <class T>
  Tally run(const std::string& variant) {
    Table by_family, by_shape;
    const std::string title = variant.empty() ? "plan's choice" : variant;
    Backend& bare = backends_.of(variant);
    SecondTry tries(bare);
    Backend& backend = o_.second_try ? static_cast<Backend&>(tries) : bare;
    for (const AttackShape shape : shapes_)
      run_shape<T>(backend, variant, shape, by_family, by_shape);
    if (by_shape.total().matrices == 0) {
      fmt::print("\n{}: takes none of the shapes\n", title);
      return {};
    }
    fmt::print(
        "\n== {} on {}, {} {}, seed {}; errors in bars ==\n"
        "Q or R: orthogonality of Q; for R alone its backward error, of samples\n"
        "mild: condition below {:g}, with columns scaled to norm 1; by A'A: of these{}{}\n",
        title, backend.device(), o_.precision, o_.mode, o_.seed, mild_condition(o_.precision),
        o_.unguarded ? "; guards off" : "", o_.second_try ? "; with a second try" : "");
    by_family.print("family");
    by_shape.print("shape");
    std::fflush(stdout);
    return by_shape.total();
  }

 private:
  template <class T>
  void run_shape(Backend& backend, const std::string& variant, AttackShape shape, Table& by_family,
                 Table& by_shape) {
    const AttackList list{
        families_, std::clamp<index_t>(o_.entries / (shape.m * shape.n), 1, o_.matrices), o_.seed};
    const index_t all = list.count();
    const bool is_alone = variant == "cpu";
    const Problem problem{.count = is_alone ? 1 : all,
                          .m = shape.m,
                          .n = shape.n,
                          .type = element_type<T>,
                          .mode = mode_of(o_),
                          .sign = o_.sign == "lapack" ? Sign::lapack : Sign::positive};
    std::optional<Plan> plan;
    try {
      plan = make_plan(problem, backend.variants(), backend.limits(),
                       is_alone ? std::string() : variant);
    } catch (const UsageError&) {
      return;  // the variant does not accept this shape
    }
    if (plan->by_rows()) return;
    if (o_.unguarded) plan->params[unguarded] = 1;
    const auto by_bytes = static_cast<index_t>(most_batch_bytes / problem.input_bytes());
    const index_t most =
        is_alone ? 1 : std::max<index_t>(1, std::min({plan->chunk_matrices, by_bytes, all}));

    const std::string name = fmt::format("{}x{} {}", shape.m, shape.n, plan->variant->name);
    Tally& of_shape = by_shape.row(name);
    Batches<T> batches(backend, problem, most);
    const auto fill = [&](index_t first, BatchView<T> a) { list.fill(first, o_.threads, a); };
    // The host fills the next batch while the device factors this one.
    fill(0, batches.a(0, std::min(most, all)));
    int turn = 0;
    for (index_t first = 0; first < all; first += most, turn ^= 1) {
      const BatchView<T> a = batches.a(turn, std::min(most, all - first));
      const index_t next = first + a.count;
      std::future<void> filling;
      if (next < all) {
        filling = std::async(std::launch::async, fill, next,
                             batches.a(turn ^ 1, std::min(most, all - next)));
      }
      const Factors<T> out = batches.factors(a.count);
      std::vector<MatrixReport> reports(static_cast<std::size_t>(a.count));
      backend.factor(*plan, a, out, reports);
      judge_batch<T>(problem, name, list, first, a, out, reports, by_family, of_shape);
      if (filling.valid()) filling.get();
    }
    fmt::print("{}: {} matrices, {} above their bar, worst {:.3g}\n", name, of_shape.matrices,
               of_shape.above, of_shape.worst());
    std::fflush(stdout);
  }

  template <class T>
  void judge_batch(const Problem& p, const std::string& shape, const AttackList& list,
                   index_t first, BatchView<T> a, const Factors<T>& out,
                   std::vector<MatrixReport>& reports, Table& by_family, Tally& of_shape) {
    const auto badness = [&](const MatrixReport& report) {
      const WorstErrors errors = errors_in_bars(p, report);
      return std::pair{errors.above, errors.worst()};
    };
    const auto worst = std::max_element(
        reports.begin(), reports.end(),
        [&](const MatrixReport& x, const MatrixReport& y) { return badness(x) < badness(y); });
    measure_again<T>(p, a, out, worst - reports.begin(), *worst);
    if (o_.plain && p.wants_q()) judge_plainly<T>(a, out, reports);
    const std::vector<double> conditions = conditions_of<T>(r_of(p, out));
    sample_r<T>(p, a, out, reports);
    for (index_t b = 0; b < a.count; ++b) {
      const MatrixReport& report = reports[static_cast<std::size_t>(b)];
      Tally t(p, report);
      t.mild = conditions[static_cast<std::size_t>(b)] < mild_condition(o_.precision);
      t.mild_fast = t.mild != 0 && t.routes.first_pass + t.routes.second_pass > 0;
      by_family.row(std::string(list.family_of(first + b).name)).include(t);
      of_shape.include(t);
      if (t.above == 0 || ++failures_ > most_failures_shown) continue;
      fmt::print("above: {} {} status {} residual {:.3g} Q or R {:.3g} route {} tries {}\n", shape,
                 list.name_of(first + b), static_cast<int>(report.status), t.residual, t.q_or_r,
                 static_cast<int>(report.route), report.tries);
    }
  }

  /// Replaces the errors of all reports by those that plain loops on the host measure.
  template <class T>
  void judge_plainly(BatchView<T> a, const Factors<T>& out,
                     std::vector<MatrixReport>& reports) const {
    parallel_for(a.count, o_.threads, [&](index_t b, int) {
      MatrixReport& report = reports[static_cast<std::size_t>(b)];
      if (report.status == Status::non_finite) return;
      const Errors errors = plain_errors<T>(a[b], out.q[b], out.r[b]);
      report.residual = errors.residual;
      report.orthogonality = errors.orthogonality;
      const bool passes = errors.residual <= report.bars.residual &&
                          errors.orthogonality <= report.bars.orthogonality;
      if (!passes) report.status = Status::above_bar;
    });
  }

  template <class T>
  std::vector<double> conditions_of(BatchView<T> r) const {
    std::vector<double> conditions(static_cast<std::size_t>(r.count));
    parallel_for(r.count, o_.threads, [&](index_t b, int) {
      conditions[static_cast<std::size_t>(b)] = scaled_condition<T>(r[b]);
    });
    return conditions;
  }

  /// Measures R alone in samples from the whole batch.
  template <class T>
  void sample_r(const Problem& p, BatchView<T> a, const Factors<T>& out,
                std::vector<MatrixReport>& reports) const {
    const index_t samples = std::min(samples_of_r, a.count);
    parallel_for(samples, o_.threads, [&](index_t sample, int) {
      const index_t b = sample * a.count / samples;
      measure_r<T>(p, a[b], r_of(p, out)[b], reports[static_cast<std::size_t>(b)]);
    });
  }

  template <class T>
  static Errors measure_factors(const Problem& p, MatrixView<const T> a, const Factors<T>& out,
                                index_t b) {
    ErrorMeter meter(p.m, p.n, p.q_cols(), p.r_rows());
    const MatrixView<const T> q = p.wants_q() ? out.q[b] : MatrixView<T>{};
    return meter.measure<T>(a, q, out.r[b], magnitude_of<T>(a).scale());
  }

  /// LAPACK's test of geqrf: Q is formed from V and tau.
  template <class T>
  static Errors measure_raw(const Problem& p, MatrixView<const T> a, const Factors<T>& out,
                            index_t b) {
    Batch<double> q(1, p.m, p.k()), r(1, p.k(), p.n), wide_a(1, p.m, p.n);
    form_q_from_reflectors<T>(out.v[b], out.tau[b].data, q.view()[0]);
    for (index_t i = 0; i < p.m; ++i) {
      for (index_t j = 0; j < p.n; ++j) {
        wide_a.view()[0](i, j) = static_cast<double>(a(i, j));
        if (i < p.k()) r.view()[0](i, j) = i <= j ? static_cast<double>(out.v[b](i, j)) : 0.0;
      }
    }
    ErrorMeter meter(p.m, p.n, p.k(), p.k());
    return meter.measure<double>(wide_a.view()[0], q.view()[0], r.view()[0],
                                 magnitude_of<T>(a).scale());
  }

  /// The host's errors replace the device's errors if they are larger.
  template <class T>
  static void measure_again(const Problem& p, BatchView<T> a, const Factors<T>& out, index_t b,
                            MatrixReport& report) {
    if (report.status == Status::non_finite) return;
    MatrixReport by_host = report;
    enter_errors(
        p,
        p.mode == Mode::raw ? measure_raw<T>(p, a[b], out, b) : measure_factors<T>(p, a[b], out, b),
        by_host);
    const WorstErrors device = errors_in_bars(p, report), host = errors_in_bars(p, by_host);
    if (host.above != device.above || host.worst() > 1.01 * device.worst()) {
      fmt::print("host and device differ: {:.3g} and {:.3g} bars\n", host.worst(), device.worst());
    }
    if (host.above > device.above || host.worst() > device.worst()) report = by_host;
  }

  /// Two batches of A and one of factors, in memory that the device copies fast.
  template <class T>
  class Batches {
   public:
    Batches(Backend& backend, const Problem& p, index_t most) : p_(p) {
      const auto batch = [&](index_t rows, index_t cols) {
        const auto bytes = static_cast<std::size_t>(most * rows * cols) * sizeof(T);
        return Batch<T>(backend.allocate(bytes), most, rows, cols);
      };
      for (Batch<T>& a : a_) a = batch(p.m, p.n);
      if (p.wants_q()) q_ = batch(p.m, p.q_cols());
      r_ = batch(p.r_rows(), p.n);
      if (p.mode == Mode::raw) tau_ = batch(1, p.k());
    }
    BatchView<T> a(int turn, index_t count) const { return a_[turn].view().slice(0, count); }
    Factors<T> factors(index_t count) const {
      Factors<T> out;
      if (p_.wants_q()) out.q = q_.view().slice(0, count);
      if (p_.mode == Mode::raw) {
        out.v = r_.view().slice(0, count);
        out.tau = tau_.view().slice(0, count);
      } else {
        out.r = r_.view().slice(0, count);
      }
      return out;
    }

   private:
    const Problem& p_;
    Batch<T> a_[2], q_, r_, tau_;  // r_: V\R in mode raw
  };

  const Options& o_;
  Backends& backends_;
  std::vector<AttackFamily> families_;
  std::vector<AttackShape> shapes_;
  int failures_ = 0;
};

/// The names for make_plan: "plan" is the plan's own choice, "gram" means "opencl/gram", and "all"
/// is the plan's choice and every variant of both backends. "cpu" stays as it is.
std::vector<std::string> variant_names(const Options& o) {
  std::vector<std::string> names;
  for (const std::string& name : o.variants) {
    if (name == "all") {
      names.emplace_back();
      for (const GpuVariant& variant : gpu_variants()) names.emplace_back(variant.plan.name);
      for (const char* cpu : {"cpu/batched", "cpu/blocked", "cpu/tall"}) names.emplace_back(cpu);
    } else if (name == "plan") {
      names.emplace_back();
    } else {
      names.push_back(name == "cpu" || name.find('/') != std::string::npos ? name
                                                                           : "opencl/" + name);
    }
  }
  return names;
}

void list() {
  fmt::print("families:\n");
  for (const AttackFamily& family : attack_families()) {
    fmt::print("  {:<22}{}\n", family.name, family.summary);
  }
  fmt::print("shapes:");
  for (const AttackShape shape : attack_shapes()) fmt::print(" {}x{}", shape.m, shape.n);
  fmt::print("\n");
}

int run(const Options& o) {
  Backends backends(o.threads);
  Attack attack(o, backends);
  Tally total;
  for (const std::string& name : variant_names(o)) {
    total.include(o.precision == "double" ? attack.run<double>(name) : attack.run<float>(name));
  }
  fmt::print(
      "\n{} matrices, {} above their bar, worst {:.3g}; {} second tries\n"
      "condition below {:g}: {} matrices, {} by A'A ({:.2f} %)\n",
      total.matrices, total.above, total.worst(), total.routes.second_try,
      mild_condition(o.precision), total.mild, total.mild_fast,
      100.0 * static_cast<double>(total.mild_fast) /
          static_cast<double>(std::max<index_t>(total.mild, 1)));
  return total.above == 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  Options o;
  CLI::App app{"Factors matrices that try to break a QR by A'A, and judges each by its bar."};
  app.add_option("--variant,--variants", o.variants,
                 "plan (the default), gram, cpu/tall, ..; cpu: the choice for one matrix; "
                 "all: one after another")
      ->delimiter(',');
  app.add_option("--matrices", o.matrices, "of each family and shape; default 100")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--entries", o.entries,
         "of A in each family and shape at most, so that tall matrices are few; default 2^26")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed, "default 1");
  app.add_option(
         "--shapes", o.shapes,
         "for example 64x64,300x40, in the list or not; few-rows: 15x15 to 33x33 and wide ones")
      ->delimiter(',');
  app.add_option("--families", o.families, "names of --list")->delimiter(',');
  app.add_option("--mode", o.mode, "reduced (the default), r or raw")
      ->check(CLI::IsMember({"reduced", "r", "raw"}));
  app.add_option("--sign", o.sign, "positive (the default) or lapack")
      ->check(CLI::IsMember({"positive", "lapack"}));
  app.add_option("--precision", o.precision, "single (the default) or double")
      ->check(CLI::IsMember({"single", "double"}));
  app.add_option("--threads", o.threads, "of the host; default all")->check(CLI::PositiveNumber);
  app.add_flag("--unguarded", o.unguarded,
               "the guards of gram, gram_tiles, gram_twice and tall accept all");
  app.add_flag("--plain", o.plain, "judge all Q and R by plain loops on the host, in mode reduced");
  app.add_flag("--second-try", o.second_try,
               "what is above its bar is factored again, as in factor");
  bool wants_list = false;
  app.add_flag("--list", wants_list, "families and shapes, nothing else");
  CLI11_PARSE(app, argc, argv);
  if (wants_list) {
    list();
    return 0;
  }
  return run(o);
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  try {
    return qrtool::test::main_of(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qrtool_attack: %s\n", error.what());
    return 2;
  }
}
