// SPDX-License-Identifier: Apache-2.0
// The audit records as a chain: now and then a seal is made, one hash over the seal before and all
// records since, so that a record which is changed, removed or slipped in later does not fit its
// seal any more. Records are ordered by the revisions of the store at which they were written. What
// was written after the newest seal is not guarded yet; and who cuts off the newest seals with all
// their records is found out only by a head that somebody kept elsewhere. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/store/transaction.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::audit {

// What a seal needs to know of a record.
struct Digested {
  store::Revision revision = 0;
  std::string digest;  // SHA-256 of its key and value
};
Digested DigestOf(const store::Entry& record);

// The next seal over records up to `revision`; previous: nullptr for the first one. records: those
// after the previous seal, in any order; later ones are left out. nullopt: there are none.
std::optional<controlplane::v1::AuditSeal> NextSeal(const controlplane::v1::AuditSeal* previous,
                                                    std::vector<Digested> records,
                                                    store::Revision revision);

// "r123:ab12...", for people and for VerifyRequest.known_head.
std::string HeadOf(const controlplane::v1::AuditSeal& seal);

struct Verdict {
  uint64_t records = 0;   // under seals
  uint64_t unsealed = 0;  // after the newest one
  store::Revision revision = 0;
  std::string problem;  // empty: intact
};
// seals: in order; all records, in any order. known_head: empty, or one that was seen before.
Verdict Verify(const std::vector<controlplane::v1::AuditSeal>& seals, std::vector<Digested> records,
               const std::string& known_head);

}  // namespace rocegw::audit
