// SPDX-License-Identifier: Apache-2.0
// Watch of etcd: one stream, reopened at another member, at its last position, whenever it ends. It
// reads a message only when the previous one was taken, so a slow consumer delays only its own
// stream (HTTP/2 flow control, then etcd's history).
#pragma once

#include <functional>
#include <memory>

#include "controlplane/store/etcd/etcd_endpoints.h"
#include "controlplane/store/etcd/etcd_messages.h"
#include "controlplane/store/store.h"

namespace rocegw::store {

std::unique_ptr<Watch> NewEtcdWatch(EtcdEndpoints& endpoints, const EtcdMessages& messages,
                                    KeyRange range, Revision from, std::function<void()> ready);

}  // namespace rocegw::store
