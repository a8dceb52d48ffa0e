// A model file's header in the terms of core's completeness check and of the record.
#pragma once

#include "core/model/model_facts.h"
#include "gguf/reader.h"

namespace opledger::session {

core::ModelFacts core_facts_of(const gguf::GgufFile& file);

}  // namespace opledger::session
