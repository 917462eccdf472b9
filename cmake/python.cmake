# The Python package (pyproject.toml): the full library under one name, without versions, beside the package's files, and
# what comes with psld. The tests' build makes the library too, so that it is known to link.
list(TRANSFORM full_objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(psld_python MODULE ${objects})
target_link_libraries(psld_python PRIVATE ${PSLD_full_LINK} psld_flags)
set_target_properties(psld_python PROPERTIES OUTPUT_NAME psld-full LIBRARY_OUTPUT_DIRECTORY python)
if(NOT SKBUILD)
    return()
endif()

install(TARGETS psld_python LIBRARY DESTINATION psld COMPONENT python)
install(DIRECTORY models/ DESTINATION psld/models COMPONENT python FILES_MATCHING PATTERN "*.safetensors")
install(DIRECTORY configs/ DESTINATION psld/configs COMPONENT python FILES_MATCHING PATTERN "*.yaml")
