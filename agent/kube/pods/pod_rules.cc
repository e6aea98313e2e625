// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pods/pod_rules.h"

#include <algorithm>

namespace rocegw::agent {
namespace {

bool Has(const std::map<std::string, std::string>& labels,
         const std::map<std::string, std::string>& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

PodAdmission AdmitsByOne(const PodRule& rule, const PodName& pod,
                         const std::optional<PodIdentity>& identity) {
  if (!rule.name_space.empty() && rule.name_space != pod.name_space) return PodAdmission::kRefused;
  // A rule without any namespace would admit all pods; the APIs reject such a rule.
  if (rule.name_space.empty() && rule.namespace_labels.empty()) return PodAdmission::kRefused;
  if (rule.namespace_labels.empty() && rule.service_account.empty()) return PodAdmission::kAdmitted;
  if (!identity) return PodAdmission::kUnknown;
  const bool account =
      rule.service_account.empty() || rule.service_account == identity->service_account;
  return account && Has(identity->namespace_labels, rule.namespace_labels) ? PodAdmission::kAdmitted
                                                                           : PodAdmission::kRefused;
}

std::string TextOf(const PodRule& rule) {
  std::string text = rule.service_account.empty() ? "" : "account " + rule.service_account + " of ";
  if (!rule.name_space.empty()) return text + "namespace " + rule.name_space;
  std::string labels;
  for (const auto& [key, value] : rule.namespace_labels)
    labels += (labels.empty() ? "" : ",") + key + "=" + value;
  return text + "namespaces with " + labels;
}

}  // namespace

PodAdmission Admits(const std::vector<PodRule>& rules, const PodName& pod,
                    const std::optional<PodIdentity>& identity) {
  PodAdmission best = PodAdmission::kRefused;
  for (const PodRule& rule : rules) {
    const PodAdmission one = AdmitsByOne(rule, pod, identity);
    if (one == PodAdmission::kAdmitted) return one;
    if (one == PodAdmission::kUnknown) best = one;
  }
  return best;
}

std::string RulesText(const std::vector<PodRule>& rules) {
  std::string text;
  for (const PodRule& rule : rules) text += (text.empty() ? "" : ", ") + TextOf(rule);
  return text;
}

}  // namespace rocegw::agent
