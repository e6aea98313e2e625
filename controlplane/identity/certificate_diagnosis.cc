// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/certificate_diagnosis.h"

#include "controlplane/identity/join_token.h"
#include "gateway/doctor/finding.h"

namespace rocegw::identity {
namespace {

// Of its life: what is left when something has kept it from being renewed for long.
constexpr int kLittle = 4;

}  // namespace

gateway::v1::Diagnosis DiagnoseCertificate(const std::string& object, TimePoint not_before,
                                           TimePoint not_after, TimePoint now) {
  doctor::Check check("agent_certificate", object);
  if (now >= not_after) {
    return std::move(check).Fail(
        "ended " + TimeText(not_after), "the agent cannot connect; what the gateway runs goes on",
        "rocegw-controller join-token --gateway NAME, then rocegw-agent --join on the host");
  }
  if (now < not_before) {
    return std::move(check).Fail("begins " + TimeText(not_before),
                                 "the agent cannot connect: a clock is wrong",
                                 "set the clocks of this host and of the controller");
  }
  const std::string found = "good until " + TimeText(not_after);
  if (not_after - now < (not_after - not_before) / kLittle) {
    return std::move(check).Warn(found, "it should have been renewed at half of its life",
                                 "journalctl -u rocegw-agent: it says why the controller refuses");
  }
  return std::move(check).Ok(found);
}

}  // namespace rocegw::identity
