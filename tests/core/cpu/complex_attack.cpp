// SPDX-License-Identifier: Apache-2.0
// complex_attack.cpp: factors as many complex matrices of all kinds as wanted, or solves as many
// complex systems, and prints the worst ratio of an error to its bar. Exits with 1 where one is
// above it.
//
//     qrtool_complex_attack --matrices 100000 --seed 1
//     qrtool_complex_attack --systems 50000 --seed 1
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/support/complex_reference.hpp"
#include "tests/support/complex_routes.hpp"
#include "tests/support/complex_systems.hpp"

namespace qrtool::test {
namespace {

struct AttackOptions {
  index_t matrices = 10000, systems = 0, most = 0;
  unsigned seed = 1;
  std::string route, kind, target, mode;
};

struct Worst {
  ComplexRatios ratios{0, 0};
  std::string residual_at, orthogonality_at;

  void take(const ComplexRatios& x, const std::string& what) {
    if (!(x.residual <= ratios.residual)) ratios.residual = x.residual, residual_at = what;
    if (!(x.orthogonality <= ratios.orthogonality))
      ratios.orthogonality = x.orthogonality, orthogonality_at = what;
  }
};

class Attack {
 public:
  explicit Attack(const AttackOptions& o) : o_(o), generator_(o.seed) {}

  bool run() {
    while (count_ < o_.matrices) {
      factor<float>();
      factor<double>();
    }
    bool is_good = true;
    for (const auto& [kind, worst] : worst_) {
      fmt::print("{:34} {:.3f} ({})  {:.3f} ({})\n", kind, worst.ratios.residual, worst.residual_at,
                 worst.ratios.orthogonality, worst.orthogonality_at);
      is_good &= worst.ratios.residual <= 1 && worst.ratios.orthogonality <= 1;
    }
    fmt::print("{} matrices, {} ratios: {}\n", count_, 2 * count_, is_good ? "ok" : "ABOVE");
    return is_good;
  }

 private:
  template <class T>
  void factor() {
    using Complex = std::complex<T>;
    static constexpr index_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 15, 16,  17,
                                        18, 20, 24, 31, 32, 33, 40, 48, 63, 64, 65, 100, 130};
    const auto draw = [&](index_t below) {
      return static_cast<index_t>(generator_() % static_cast<std::uint64_t>(below));
    };
    const index_t most = o_.most > 0 ? o_.most : 26 - draw(20);
    Problem p{.count = 16, .m = sizes[draw(most)], .n = sizes[draw(most)]};
    if (draw(3) == 0) p.n = p.m;
    p.sign = draw(2) == 0 ? Sign::positive : Sign::lapack;
    if (!o_.mode.empty())
      p.mode = o_.mode == "raw"        ? Mode::raw
               : o_.mode == "complete" ? Mode::complete
                                       : Mode::reduced;
    else
      p.mode = draw(4) == 0 ? Mode::raw : draw(8) == 0 ? Mode::complete : Mode::reduced;
    const auto& kinds = complex_kinds();
    const std::string kind =
        o_.kind.empty() ? kinds[draw(static_cast<index_t>(kinds.size()))] : o_.kind;
    const Batch<Complex> a(p.count, p.m, p.n), q(p.count, p.m, p.q_cols()),
        r(p.count, p.r_rows(), p.n), tau(p.count, 1, p.k());
    for (index_t b = 0; b < p.count; ++b) fill_complex<T>(kind, generator_, a.view()[b]);
    std::vector<batched::Outcome> outcomes(p.count);
    const bool is_raw = p.mode == Mode::raw;
    const Factors<Complex> out{.q = is_raw ? BatchView<Complex>{} : q.view(),
                               .r = is_raw ? BatchView<Complex>{} : r.view(),
                               .v = is_raw ? r.view() : BatchView<Complex>{},
                               .tau = is_raw ? tau.view() : BatchView<Complex>{}};
    const ComplexRoute route = o_.route.empty()      ? complex_route(p)
                               : o_.route == "packs" ? ComplexRoute::packs
                                                     : ComplexRoute::strips;
    ComplexFactor<T> qr(p, route, o_.target);
    for (index_t first = 0; first < p.count; first += qr.matrices_at_once()) {
      const index_t count = std::min(qr.matrices_at_once(), p.count - first);
      qr.factor(a.view().slice(first, count), slice(out, first, count),
                std::span(outcomes).subspan(first, count));
    }
    for (index_t b = 0; b < p.count; ++b) {
      if (!outcomes[b].r_fits) continue;
      ComplexMatrix upper(MatrixView<const Complex>(r.view()[b]));
      ComplexMatrix unitary(0, 0);
      if (is_raw) {
        unitary =
            q_of_reflectors(upper, ComplexMatrix(MatrixView<const Complex>(tau.view()[b])), p.m);
        for (index_t i = 0; i < p.m; ++i)
          for (index_t j = 0; j < std::min(i, p.n); ++j) upper(i, j) = 0;
      } else {
        unitary = ComplexMatrix(MatrixView<const Complex>(q.view()[b]));
      }
      const ComplexMatrix given(MatrixView<const Complex>(a.view()[b]));
      worst_[kind].take(complex_ratios(given, unitary, upper, element_type<T>),
                        fmt::format("{}x{} {} {}", p.m, p.n, name_of(p.mode),
                                    sizeof(T) == 8 ? "double" : "float"));
    }
    count_ += p.count;
  }

  AttackOptions o_;
  std::mt19937_64 generator_;
  index_t count_ = 0;
  std::map<std::string, Worst> worst_;
};

bool attack_systems(const AttackOptions& o) {
  std::mt19937_64 generator(o.seed);
  ComplexSystemTally tally;
  while (tally.solutions < o.systems) {
    attack_complex_systems<float>(generator, tally);
    attack_complex_systems<double>(generator, tally);
  }
  fmt::print(
      "{} solutions, {} of deficient matrices, {} second tries\n"
      "backward error {:.3f} of its bar ({}), least norm {:.3f} ({})\n",
      tally.solutions, tally.deficient, tally.tries, tally.worst, tally.worst_at,
      tally.worst_least_norm, tally.worst_least_norm_at);
  if (tally.failed > 0) fmt::print("{} ABOVE; the first: {}\n", tally.failed, tally.first_failure);
  return tally.failed == 0;
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  qrtool::test::AttackOptions o;
  CLI::App app("Looks for complex matrices whose factors are above the bar.",
               "qrtool_complex_attack");
  app.add_option("--matrices", o.matrices);
  app.add_option("--systems", o.systems, "solves systems in place of factoring matrices");
  app.add_option("--seed", o.seed);
  app.add_option("--kind", o.kind)->check(CLI::IsMember(qrtool::test::complex_kinds()));
  app.add_option("--route", o.route, "packs or strips");
  app.add_option("--mode", o.mode)->check(CLI::IsMember({"raw", "complete", "reduced"}));
  app.add_option("--target", o.target, "generic, avx2 or avx512");
  app.add_option("--most", o.most, "of 26 sizes");
  CLI11_PARSE(app, argc, argv);
  if (o.systems > 0) return qrtool::test::attack_systems(o) ? 0 : 1;
  return qrtool::test::Attack(o).run() ? 0 : 1;
}
