// SPDX-License-Identifier: Apache-2.0
// Resource names (proto/rules/resource_name.h), under this module's name.
#pragma once

#include "proto/rules/resource_name.h"

namespace rocegw::model {

using rules::Collection;
using rules::CollectionId;
using rules::IsDnsLabel;
using rules::kAny;
using rules::MismatchWithPattern;
using rules::NameOf;
using rules::ParentCollectionId;
using rules::ParseResourceName;
using rules::ResourceName;

}  // namespace rocegw::model
