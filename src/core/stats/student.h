// Student's t distribution for whole degrees of freedom.
#pragma once

#include <optional>

namespace opledger::core {

/// The value that a t variable of `degrees` degrees of freedom stays below with probability `p`.
/// Empty for fewer than one degree or `p` outside the open interval 0 to 1.
std::optional<double> student_t_quantile(double p, int degrees);

}  // namespace opledger::core
