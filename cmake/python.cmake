# The Python package (pyproject.toml): the full library under one name, without versions, beside the package's files, and
# what comes with psld.
add_library(psld_python MODULE $<TARGET_OBJECTS:psld_objects> $<TARGET_OBJECTS:psld_full_objects>)
target_link_libraries(psld_python PRIVATE ${PSLD_full_LINK} psld_flags)
set_target_properties(psld_python PROPERTIES OUTPUT_NAME psld-full LIBRARY_OUTPUT_DIRECTORY python)

install(TARGETS psld_python LIBRARY DESTINATION psld COMPONENT python)
install(DIRECTORY models/ DESTINATION psld/models COMPONENT python FILES_MATCHING PATTERN "*.safetensors")
install(DIRECTORY configs/ DESTINATION psld/configs COMPONENT python FILES_MATCHING PATTERN "*.yaml")
