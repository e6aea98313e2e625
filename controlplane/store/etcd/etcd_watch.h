// SPDX-License-Identifier: Apache-2.0
// A watch of etcd: one stream, opened anew at another member, from where it was, whenever it ends.
// It reads a message only when the one before it has been taken, so a slow consumer holds up its
// own stream (HTTP/2 flow control, then etcd's history) and nothing else.
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
