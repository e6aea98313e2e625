// SPDX-License-Identifier: Apache-2.0
// Commands on peers of endpoints: checks the address once, discovers the gateway behind it, and
// tells every worker.
#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/commands/qp_attributes.h"
#include "gateway/session/objects/session_costs.h"

namespace rocegw::session {
namespace {

constexpr uint32_t kPeerMask = verbs::kAttrAv | verbs::kAttrDestQpn;
// Time for discovery of a peer. A queue pair with a silent peer uses plain RoCEv2, an endpoint
// cannot; and a first packet may wait for its neighbour's address or for a busy gateway.
constexpr Duration kPatience = Milliseconds(500);

void DropPeer(ClientSession& session, uint32_t handle, std::function<void()> done) {
  session.workers().Broadcast(
      [&](WorkerIndex) {
        return worker::UnlinkPeer{session.id(), handle};
      },
      [&session, handle, done = std::move(done)](const worker::ControlReply&) {
        session.release().FreePeer(handle);
        done();
      });
}

void LinkPeer(ClientSession& session, const rocegw_create_peer& asked,
              const verbs::QpAttributes& attributes, const cm::DataPath& path) {
  Pd* const pd = session.objects().pds.Find(asked.pd);
  if (pd == nullptr) return session.exchange().Error(EINVAL);
  const bool endpoints = path.channel && (path.channel->features & wire::kOptionEndpoints) != 0;
  if (!endpoints) return session.exchange().Error(EHOSTUNREACH);
  // A peer counts as an address handle, which has no heap here.
  auto peer = std::make_unique<EndpointPeer>();
  const uint64_t heap = HeapOfPeer(session.workers().worker_count());
  if (const int error = session.quota().Take(Resource::kHeapBytes, heap, peer->heap))
    return session.exchange().Error(error);
  if (const int error = session.quota().Take(Resource::kAhs))
    return session.exchange().Error(error);
  peer->context = pd->context;
  peer->pd = asked.pd;
  ++pd->users;
  peer->linked = {.device = session.objects().contexts.Find(pd->context)->device,
                  .endpoint = attributes.dest_qpn,
                  .key = asked.key,
                  .path = attributes.path,
                  .target = *path.channel};
  const transport::Peer known = peer->linked;
  const uint32_t handle = session.objects().peers.Add(std::move(peer));
  const worker::LinkPeer link{session.id(), handle, known};
  session.workers().Broadcast([&](WorkerIndex) { return link; },
                              [&session, handle](const worker::ControlReply& linked) {
                                if (linked.error == 0) return session.exchange().Object(handle, 0);
                                DropPeer(session, handle, [&session, error = linked.error] {
                                  session.exchange().Error(error);
                                });
                              });
}

void FindPeer(ClientSession& session, const rocegw_create_peer& asked,
              const verbs::QpAttributes& attributes, TimePoint give_up) {
  session.cm().WithDataPath(attributes.path, attributes.dest_qpn, UINT32_MAX,
                            [&session, asked, attributes, give_up](const cm::DataPath& chosen) {
                              if (session.ending()) return session.exchange().Error(ESHUTDOWN);
                              const wire::Gid& peer = attributes.path.destination;
                              if (const int error = session.rules().CheckPeer(session.pool(), peer))
                                return session.exchange().Error(error);
                              if (!chosen.silent || ControlLoop::Now() >= give_up)
                                return LinkPeer(session, asked, attributes, chosen);
                              session.cm().ForgetPeer(peer);
                              FindPeer(session, asked, attributes, give_up);
                            });
}

}  // namespace

void CreatePeer(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_peer>();
  const Pd* const pd = session.objects().pds.Find(asked.pd);
  if (pd == nullptr || asked.qpn <= kGsiQpn.value || asked.qpn >= kMulticastQpn.value)
    return session.exchange().Error(EINVAL);
  const uint32_t index = session.objects().contexts.Find(pd->context)->device;
  rocegw_qp_attr attr{};
  attr.av = asked.av;
  attr.dest_qpn = asked.qpn;
  auto attributes = FromClient(attr, kPeerMask, session.devices().SeenBy(session.pool())[index],
                               session.options().device, Qpn{asked.qpn});
  if (!attributes.ok()) return session.exchange().Error(attributes.status().error());
  if (const int error = session.rules().CheckPeer(session.pool(), attributes->path.destination))
    return session.exchange().Error(error);
  FindPeer(session, asked, *attributes, ControlLoop::Now() + kPatience);
}

void DestroyPeer(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  if (session.objects().peers.Find(handle) == nullptr) return session.exchange().Error(EINVAL);
  DropPeer(session, handle, [&session] { session.exchange().Done(); });
}

}  // namespace rocegw::session
