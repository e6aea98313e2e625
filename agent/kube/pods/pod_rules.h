// SPDX-License-Identifier: Apache-2.0
// Admission of pods by a pool's rules. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "agent/kube/pods/pod_identities.h"
#include "agent/kube/pool_offer.h"

namespace rocegw::agent {

enum class PodAdmission {
  kAdmitted,
  kRefused,
  // A rule may hold that needs the pod's identity from the API server (PodIdentity).
  kUnknown,
};

// `identity`: nullopt: unknown. A rule with only a namespace name does not need it.
PodAdmission Admits(const std::vector<PodRule>& rules, const PodName& pod,
                    const std::optional<PodIdentity>& identity);

// Returns the rules for display: "namespace web, account trainer of namespace batch".
std::string RulesText(const std::vector<PodRule>& rules);

}  // namespace rocegw::agent
