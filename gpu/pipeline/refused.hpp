// SPDX-License-Identifier: Apache-2.0
// refused.hpp: the way of the matrices that the guard of a variant has refused.
//
//   scaled columns | further passes | reflectors
//
// Each step takes the matrices whose route is `reflectors`, and changes the routes of those that it
// has factored. Its kernels find them by their routes, so that it may be launched where there are
// none. The host leaves it out then, if it knows: reading the routes costs a wait.
#pragma once

#include "gpu/pipeline/engine.hpp"

namespace qrtool {

/// Enqueues these steps for a job that `first` has factored. Without reflectors where
/// `leaves_refused`. The host reads the routes unless all kernels are built, and it takes no longer
/// to launch them for nothing.
void factor_refused(FactorEngine& engine, const GpuVariant& first, const FactorJob& job,
                    bool leaves_refused);

/// Gets the kernels of these steps ready, where the host need not read the routes then. Builds what
/// is missing; without `builds` only takes kernels that are kept on disk.
void prepare_refused(FactorEngine& engine, const GpuVariant& first, const FactorJob& job,
                     bool builds, bool leaves_refused);

}  // namespace qrtool
