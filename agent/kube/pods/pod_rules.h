// SPDX-License-Identifier: Apache-2.0
// Whether a pool's rules admit a pod. Pure.
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
  // A rule may hold that needs what only the API server knows (PodIdentity).
  kUnknown,
};

// identity: nullopt: not known. A rule that names the namespace alone needs none.
PodAdmission Admits(const std::vector<PodRule>& rules, const PodName& pod,
                    const std::optional<PodIdentity>& identity);

// The rules for people: "namespace web, account trainer of namespace batch".
std::string RulesText(const std::vector<PodRule>& rules);

}  // namespace rocegw::agent
