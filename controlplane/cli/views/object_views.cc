// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/object_views.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "controlplane/cli/documents/quantity.h"
#include "rocegw/types/v1/cc_policy.pb.h"
#include "rocegw/types/v1/operation.pb.h"
#include "rocegw/types/v1/pool.pb.h"
#include "rocegw/types/v1/role_binding.pb.h"
#include "rocegw/types/v1/tenant.pb.h"

namespace rocegw::cli {
namespace {

using google::protobuf::Message;
using types::v1::Limits;

using Cells = std::vector<std::string>;
using Heads = std::vector<std::pair<const char*, Column>>;

std::string Count(uint64_t value) { return QuantityText(value, Unit::kCount); }

std::string Lower(std::string text) {
  for (char& c : text) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

// Returns "committed/peak"; "-": no limit of its own.
template <typename Has, typename Get>
std::string Share(const types::v1::Quota& quota, Unit unit, Has has, Get get) {
  const auto text = [&](const Limits& limits) {
    return (limits.*has)() ? QuantityText((limits.*get)(), unit) : std::string("-");
  };
  if (!(quota.committed().*has)() && !(quota.peak().*has)()) return "-";
  return text(quota.committed()) + "/" + text(quota.peak());
}

std::string QpShare(const types::v1::Quota& quota) {
  return Share(quota, Unit::kCount, &Limits::has_qps, &Limits::qps);
}
std::string MemoryShare(const types::v1::Quota& quota) {
  return Share(quota, Unit::kBytes, &Limits::has_registered_bytes, &Limits::registered_bytes);
}
std::string RateShare(const types::v1::Quota& quota) {
  return Share(quota, Unit::kBytesPerSecond, &Limits::has_bytes_per_second,
               &Limits::bytes_per_second);
}

std::string Weight(uint32_t weight) { return std::to_string(std::max(weight, 1U)); }

Heads HeadsOf(const types::v1::Tenant&, bool wide) {
  Heads heads = {{"NAME", Column::kCut},         {"POOLS", Column::kRight},
                 {"WEIGHT", Column::kRight},     {"QPS", Column::kRight},
                 {"REGISTERED", Column::kRight}, {"BANDWIDTH", Column::kRight}};
  if (wide) heads.insert(heads.end(), {{"PEERS", Column::kLeft}, {"DISPLAY-NAME", Column::kLeft}});
  return heads;
}

Cells CellsOf(const types::v1::Tenant& tenant, bool wide, int64_t) {
  const auto& spec = tenant.spec();
  Cells cells = {std::to_string(tenant.status().pools()), Weight(spec.weight()),
                 QpShare(spec.quota()), MemoryShare(spec.quota()), RateShare(spec.quota())};
  if (wide) {
    cells.push_back(Joined(spec.allowed_peers()));
    cells.push_back(OrDash(spec.display_name()));
  }
  return cells;
}

Heads HeadsOf(const types::v1::Pool&, bool wide) {
  Heads heads = {{"NAME", Column::kCut},       {"GATEWAYS", Column::kRight},
                 {"SLOTS", Column::kRight},    {"READY", Column::kRight},
                 {"QPS", Column::kRight},      {"REGISTERED", Column::kRight},
                 {"BANDWIDTH", Column::kRight}};
  if (wide) {
    heads.insert(heads.end(), {{"WEIGHT", Column::kRight},
                               {"CC", Column::kLeft},
                               {"ADDRESSES", Column::kLeft},
                               {"PEERS", Column::kLeft}});
  }
  return heads;
}

Cells CellsOf(const types::v1::Pool& pool, bool wide, int64_t) {
  const auto& spec = pool.spec();
  const auto& status = pool.status();
  Cells cells = {
      std::to_string(status.gateways_applied()) + "/" + std::to_string(status.gateways_selected()),
      std::to_string(spec.slots()),
      Count(spec.ready_qps()),
      QpShare(spec.quota()),
      MemoryShare(spec.quota()),
      RateShare(spec.quota())};
  if (wide) {
    cells.push_back(Weight(spec.weight()));
    cells.push_back(OrDash(ShortName(spec.cc_policy())));
    cells.push_back(Joined(spec.addresses()));
    cells.push_back(Joined(spec.allowed_peers()));
  }
  return cells;
}

Heads HeadsOf(const types::v1::CcPolicy&, bool) {
  return {{"NAME", Column::kLeft}, {"WINDOW", Column::kRight}, {"POOLS", Column::kRight}};
}

Cells CellsOf(const types::v1::CcPolicy& policy, bool, int64_t) {
  const uint64_t window = policy.spec().window_bytes();
  return {window == 0 ? "auto" : QuantityText(window, Unit::kBytes),
          std::to_string(policy.status().pools())};
}

Heads HeadsOf(const types::v1::Gateway&, bool wide) {
  Heads heads = {{"NAME", Column::kLeft}, {"STATE", Column::kLeft}};
  if (wide) {
    heads.insert(heads.end(), {{"APPLIED", Column::kRight},
                               {"DESIRED", Column::kRight},
                               {"AGENT", Column::kLeft},
                               {"CERTIFICATE-ENDS", Column::kRight}});
  }
  heads.insert(heads.end(),
               {{"VERSION", Column::kLeft}, {"SEEN", Column::kRight}, {"ADDRESSES", Column::kCut}});
  return heads;
}

Cells CellsOf(const types::v1::Gateway& gateway, bool wide, int64_t now) {
  const auto& status = gateway.status();
  Cells cells = {GatewayWord(gateway)};
  if (wide) {
    cells.push_back(std::to_string(status.applied_revision()));
    cells.push_back(std::to_string(status.desired_revision()));
    cells.push_back(OrDash(status.agent_version()));
    const int64_t ends = status.certificate_expire_time().seconds();
    cells.push_back(ends == 0 ? "-" : AgeText(ends - now));
  }
  cells.push_back(OrDash(status.gateway_version()));
  const int64_t seen = status.last_seen_time().seconds();
  cells.push_back(status.connected() ? "now" : seen == 0 ? "never" : AgeText(now - seen));
  cells.push_back(Joined(status.addresses()));
  return cells;
}

Heads HeadsOf(const types::v1::RoleBinding&, bool) {
  return {{"NAME", Column::kLeft},
          {"ROLE", Column::kLeft},
          {"TENANT", Column::kLeft},
          {"SUBJECT", Column::kCut}};
}

Cells CellsOf(const types::v1::RoleBinding& binding, bool, int64_t) {
  return {Lower(types::v1::Role_Name(binding.spec().role())),
          OrDash(ShortName(binding.spec().tenant())), binding.spec().subject()};
}

Heads HeadsOf(const types::v1::Operation&, bool wide) {
  Heads heads = {{"NAME", Column::kLeft},
                 {"VERB", Column::kLeft},
                 {"TARGET", Column::kLeft},
                 {"STATE", Column::kLeft}};
  if (wide) heads.emplace_back("BY", Column::kLeft);
  heads.emplace_back("STEP", Column::kCut);
  return heads;
}

Cells CellsOf(const types::v1::Operation& operation, bool wide, int64_t) {
  const auto& status = operation.status();
  const bool failed = !status.error_reason().empty();
  Cells cells = {operation.spec().verb(), ShortName(operation.spec().target()),
                 failed          ? "failed"
                 : status.done() ? "done"
                                 : "running"};
  if (wide) cells.push_back(OrDash(operation.spec().principal()));
  cells.push_back(OrDash(failed ? status.error_message() : status.step()));
  return cells;
}

Heads HeadsOf(const types::v1::Donor&, bool wide) {
  Heads heads = {{"NAME", Column::kCut},
                 {"STATE", Column::kLeft},
                 {"DONATED", Column::kRight},
                 {"LEASED", Column::kRight},
                 {"LEASES", Column::kRight}};
  if (wide) {
    heads.insert(heads.end(), {{"SESSIONS", Column::kRight},
                               {"QUOTAS", Column::kRight},
                               {"DOMAIN", Column::kLeft},
                               {"POOL", Column::kLeft},
                               {"ADDRESS", Column::kLeft},
                               {"VERSION", Column::kLeft}});
  }
  return heads;
}

Cells CellsOf(const types::v1::Donor& donor, bool wide, int64_t) {
  const auto& status = donor.status();
  Cells cells = {DonorWord(donor), QuantityText(status.donated_bytes(), Unit::kBytes),
                 QuantityText(status.leased_bytes(), Unit::kBytes), Count(status.leases())};
  if (wide) {
    cells.push_back(Count(status.sessions()));
    cells.push_back(std::to_string(donor.spec().quotas_size()));
    cells.push_back(OrDash(donor.spec().failure_domain()));
    cells.push_back(OrDash(status.pool()));
    cells.push_back(OrDash(status.address()));
    cells.push_back(OrDash(status.version()));
  }
  return cells;
}

std::string LabelsText(const google::protobuf::Map<std::string, std::string>& labels) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : labels) texts.push_back(key + "=" + value);
  std::ranges::sort(texts);
  return Joined(texts);
}

// Calls `use` with the object in its own type.
template <typename Use>
void Visit(const Kind& kind, const Message& object, Use use) {
  if (kind.object == types::v1::Tenant::descriptor()) {
    use(static_cast<const types::v1::Tenant&>(object));
  } else if (kind.object == types::v1::Pool::descriptor()) {
    use(static_cast<const types::v1::Pool&>(object));
  } else if (kind.object == types::v1::CcPolicy::descriptor()) {
    use(static_cast<const types::v1::CcPolicy&>(object));
  } else if (kind.object == types::v1::Gateway::descriptor()) {
    use(static_cast<const types::v1::Gateway&>(object));
  } else if (kind.object == types::v1::RoleBinding::descriptor()) {
    use(static_cast<const types::v1::RoleBinding&>(object));
  } else if (kind.object == types::v1::Operation::descriptor()) {
    use(static_cast<const types::v1::Operation&>(object));
  } else if (kind.object == types::v1::Donor::descriptor()) {
    use(static_cast<const types::v1::Donor&>(object));
  }
}

Heads AllHeads(const Kind& kind, bool wide) {
  Heads heads;
  const Message& some =
      *google::protobuf::MessageFactory::generated_factory()->GetPrototype(kind.object);
  Visit(kind, some, [&](const auto& object) { heads = HeadsOf(object, wide); });
  // The age comes before the truncated column, if there is one.
  const bool cut = heads.back().second == Column::kCut;
  heads.insert(heads.end() - (cut ? 1 : 0), {"AGE", Column::kRight});
  if (wide) heads.insert(heads.end(), {{"ETAG", Column::kLeft}, {"LABELS", Column::kLeft}});
  return heads;
}

}  // namespace

std::string DonorWord(const types::v1::Donor& donor) {
  const auto& status = donor.status();
  switch (status.health()) {
    case types::v1::DonorState::SILENT:
      return "silent";
    case types::v1::DonorState::ABSENT:
      return "absent";
    case types::v1::DonorState::SERVING:
      break;
    default:
      return "unseen";
  }
  if (!donor.spec().approved()) return status.leases() == 0 ? "unapproved" : "revoked";
  if (status.draining()) return IsDrained(donor) ? "drained" : "draining";
  return donor.spec().admin_state() == types::v1::DRAINING ? "draining" : "serving";
}

bool IsDrained(const types::v1::Donor& donor) {
  return donor.status().draining() && donor.status().leases() == 0;
}

std::string WhyNoWait(const types::v1::Donor& donor) {
  const std::string word = DonorWord(donor);
  if (IsDrained(donor) || (word != "absent" && word != "unseen")) return {};
  return donor.name() + " is " + word +
         ": its agent does not report it, so that nobody knows its leases; the drain is ordered";
}

std::string GatewayWord(const types::v1::Gateway& gateway) {
  const auto& status = gateway.status();
  const auto fails = [&](const char* type) {
    return std::ranges::any_of(status.conditions(), [&](const types::v1::Condition& condition) {
      return condition.type() == type && !condition.holds();
    });
  };
  if (!status.connected()) return "disconnected";
  if (fails("GatewayReachable")) return "no-daemon";
  if (fails("Adopted")) return "unadopted";
  if (status.rejections_size() != 0) return "rejecting";
  if (gateway.spec().admin_state() == types::v1::DRAINING) {
    return status.drain().empty() ? "drained" : "draining";
  }
  return status.applied_revision() < status.desired_revision() ? "behind" : "ok";
}

Table ObjectTable(const Kind& kind, bool wide) {
  Table table;
  for (const auto& [title, column] : AllHeads(kind, wide)) table.AddColumn(title, column);
  return table;
}

void AddObject(const Kind& kind, const Message& object, bool wide, int64_t now, Table& table) {
  Visit(kind, object, [&](const auto& typed) {
    Cells cells = CellsOf(typed, wide, now);
    const bool cut = HeadsOf(typed, wide).back().second == Column::kCut;
    const int64_t born = typed.meta().create_time().seconds();
    cells.insert(cells.begin(), ShortName(typed.name()));
    cells.insert(cells.end() - (cut ? 1 : 0), born == 0 ? "-" : AgeText(now - born));
    if (wide) {
      cells.push_back(OrDash(typed.meta().etag()));
      cells.push_back(LabelsText(typed.meta().labels()));
    }
    table.AddRow(std::move(cells));
  });
}

void AddDeleted(const Kind& kind, const std::string& name, bool wide, Table& table) {
  Cells cells(AllHeads(kind, wide).size());
  cells[0] = ShortName(name);
  cells[1] = "deleted";
  table.AddRow(std::move(cells));
}

std::string GatewayReason(const types::v1::Gateway& gateway, int64_t now) {
  const auto& status = gateway.status();
  if (!status.connected()) {
    const int64_t seen = status.last_seen_time().seconds();
    return seen == 0 ? "has never been here" : "last seen " + AgeText(now - seen) + " ago";
  }
  if (status.rejections_size() != 0) {
    const auto& first = status.rejections(0);
    return first.object() + ": " + first.reason() + ": " + first.message();
  }
  for (const auto& condition : status.conditions()) {
    if (!condition.holds()) return condition.message();
  }
  if (gateway.spec().admin_state() == types::v1::DRAINING) {
    const auto& drain = status.drain();
    if (drain.empty()) return "empty";
    return std::to_string(drain.sessions()) + " sessions, " + std::to_string(drain.qps()) + " QPs";
  }
  return "runs " + std::to_string(status.applied_revision()) + ", should run " +
         std::to_string(status.desired_revision());
}

}  // namespace rocegw::cli
