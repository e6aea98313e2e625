// SPDX-License-Identifier: Apache-2.0
// End of a session (client_session.h).
#include <vector>

#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"

namespace rocegw::session {

void ClientSession::End(const std::string& reason) {
  if (ending_) return;
  ending_ = true;
  services_.reports.Say(greeted() ? Severity::kInfo : Severity::kDebug,
                        "session " + std::to_string(id_.value) + " (" + peer_.comm + ", pid " +
                            std::to_string(peer_.pid) + ") ends: " + reason);
  memory_.Revoke();
  exchange_.Close();
  cm_.DropSession(*this);
  release_.DropCmIds();
  ContinueEnd();
}

void ClientSession::DisconnectAll() {
  std::vector<cm::CmHandle> ids;
  objects_.cm_ids.ForEach([&](uint32_t, const CmId& id) { ids.push_back(id.engine); });
  // Unconnected ids return an error, which is expected.
  for (const cm::CmHandle id : ids) (void)cm_.Run(*this, id, cm::Disconnect{});
  verbs::QpAttributes failed;
  failed.state = verbs::QpState::kError;
  objects_.qps.ForEach([&](uint32_t, Qp& qp) {
    qp.setting_up = false;
    services_.workers.Tell(
        qp.worker, worker::ModifyQp{objects_.LinkedAs(id_, qp), qp.qpn, verbs::kAttrState, failed});
  });
}

void ClientSession::ContinueEnd() {
  const Join join = JoinThen([this] {
    segment().Abandon();
    FreeAll();
  });
  // Its continuations may still use objects, and its messages are answered before the ones below.
  exchange_.HoldUntilSettled(join);
  release_.UnlinkAll(join);
  // Sent without waiting for the regions: a worker that waits for a blocked copier answers both
  // with this message.
  links_.Unlink(join);
}

void ClientSession::FreeAll() {
  release_.FreeAll();
  memory_.Release();
  links_.Release();
  segment_.Release();
  ended_ = true;
  if (on_ended) on_ended();
}

}  // namespace rocegw::session
