// SPDX-License-Identifier: Apache-2.0
// Chain of audit records. From time to time a seal is made: a hash over the previous seal and all
// records since, so that a record that is changed, removed or inserted later does not fit its seal.
// Records are ordered by their store revisions. Records after the newest seal are not protected
// yet. Truncating the newest seals with all their records is detected only by a head that was kept
// elsewhere. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/store/transaction.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::audit {

// Data of a record for its seal.
struct Digested {
  store::Revision revision = 0;
  std::string digest;  // SHA-256 of its key and value
};
Digested DigestOf(const store::Entry& record);

// Returns the next seal over records up to `revision`. `previous`: nullptr for the first one.
// `records`: those after the previous seal, in any order; later ones are ignored. nullopt: there
// are none.
std::optional<controlplane::v1::AuditSeal> NextSeal(const controlplane::v1::AuditSeal* previous,
                                                    std::vector<Digested> records,
                                                    store::Revision revision);

// Returns "r123:ab12...", for display and for VerifyRequest.known_head.
std::string HeadOf(const controlplane::v1::AuditSeal& seal);

struct Verdict {
  uint64_t records = 0;   // under seals
  uint64_t unsealed = 0;  // after the newest one
  store::Revision revision = 0;
  std::string problem;  // empty: intact
};
// Verifies the chain. `seals`: in order; all records, in any order. `known_head`: empty, or one
// that was seen before.
Verdict Verify(const std::vector<controlplane::v1::AuditSeal>& seals, std::vector<Digested> records,
               const std::string& known_head);

}  // namespace rocegw::audit
